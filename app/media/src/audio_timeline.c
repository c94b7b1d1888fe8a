#include "audio_timeline.h"

#define FAR (80 * GST_MSECOND)
/* A card that is off by 1 in 1000 (bad) is then 2.6 ms off at most. */
#define DRAW 128

gboolean cam_audio_timeline_place(CamAudioTimeline *timeline, GstClockTime now,
                                  GstClockTime duration, GstClockTime *pts)
{
    GstClockTime measured = now > duration ? now - duration : 0;
    GstClockTimeDiff error;

    if (timeline->next == 0)
        timeline->next = measured;
    error = GST_CLOCK_DIFF(timeline->next, measured);
    if (error < -(GstClockTimeDiff)FAR)
        return FALSE;
    if (error > (GstClockTimeDiff)FAR)
        timeline->next = measured;
    else
        timeline->next = (GstClockTime)((GstClockTimeDiff)timeline->next + error / DRAW);
    *pts = timeline->next;
    timeline->next += duration;
    return TRUE;
}
