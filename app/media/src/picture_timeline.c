#include "picture_timeline.h"

/* Nothing is on its way for longer: it is the camera's clock that is wrong. */
#define OLDEST (10 * GST_SECOND)
/* Between a picture and one that should have come before it. */
#define STEP (1 * GST_MSECOND)

GstClockTime cam_picture_timeline_place(CamPictureTimeline *timeline, GstClockTime taken,
                                        GstClockTime now, GstClockTime last)
{
    if (taken > now || taken + OLDEST < now)
        taken = now;
    if (taken > timeline->taken)
        timeline->delay -= MIN(timeline->delay, (taken - timeline->taken) / 2);
    if (taken + timeline->delay <= last)
        timeline->delay = last + STEP - taken;
    timeline->taken = taken;
    return taken + timeline->delay;
}
