#include "camera_stall.h"

#define FIRST (5 * GST_SECOND)
#define FIRST_MOST (40 * GST_SECOND)
#define GAP (1500 * GST_MSECOND)
#define GAP_MOST (8 * GST_SECOND)
#define GOOD_WHILE (600 * GST_SECOND)

void cam_stall_init(CamStall *stall)
{
    *stall = (CamStall){.first = FIRST};
}

void cam_stall_opened(CamStall *stall, GstClockTime now)
{
    stall->newest = now;
    stall->begun = FALSE;
}

static GstClockTime gap_limit(guint doublings, int fps)
{
    GstClockTime least = MAX(GAP, 4 * GST_SECOND / (guint64)MAX(1, fps));

    return MIN(least << doublings, MAX(least, GAP_MOST));
}

/* A good while in which half the limit would have done as well, and it is halved. */
static void relax(CamStall *stall, GstClockTime gap, int fps, GstClockTime now)
{
    if (stall->doublings == 0)
        return;
    if (gap > gap_limit(stall->doublings - 1, fps)) {
        stall->since = now;
    } else if (now > stall->since + GOOD_WHILE) {
        stall->doublings--;
        stall->since = now;
    }
}

void cam_stall_picture(CamStall *stall, int fps, GstClockTime now)
{
    if (stall->begun)
        relax(stall, now - stall->newest, fps, now);
    stall->newest = now;
    stall->begun = TRUE;
}

const char *cam_stall_check(CamStall *stall, int fps, GstClockTime now)
{
    GstClockTime waited = now - stall->newest;

    if (!stall->begun) {
        if (waited <= stall->first)
            return NULL;
        stall->first = MIN(2 * stall->first, FIRST_MOST);
        return "the camera delivers no pictures";
    }
    if (waited <= gap_limit(stall->doublings, fps))
        return NULL;
    if (gap_limit(stall->doublings, fps) < GAP_MOST)
        stall->doublings++;
    stall->since = now;
    return "the camera stopped delivering pictures";
}
