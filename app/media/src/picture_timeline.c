#include "picture_timeline.h"

/* Nothing is on its way for longer: it is the camera's clock that is wrong. */
#define OLDEST (10 * GST_SECOND)
/* So far ahead may a picture be: a clip's first one, each time it begins anew, is by an interval,
 * and a camera's clock by some milliseconds. */
#define AHEAD (1 * GST_SECOND)
/* Between a picture and one that should have come before it. */
#define STEP (1 * GST_MSECOND)

GstClockTime cam_picture_timeline_place(CamPictureTimeline *timeline, GstClockTime taken,
                                        GstClockTime now, GstClockTime last)
{
    if (taken > now + AHEAD || taken + OLDEST < now)
        taken = now;
    if (taken > timeline->taken)
        timeline->delay -= MIN(timeline->delay, (taken - timeline->taken) / 2);
    /* Less late than before: no reason to place it in the future. */
    timeline->delay = MIN(timeline->delay, now > taken ? now - taken : 0);
    if (taken + timeline->delay <= last)
        timeline->delay = last + STEP - taken;
    timeline->taken = taken;
    return taken + timeline->delay;
}
