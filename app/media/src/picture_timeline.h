/* Times for a camera's pictures. Those of its source and the "no signal" pictures share one line,
 * on which time only goes on; but a picture is known later than it was taken, by 2 s with some
 * cameras, and then is older than the "no signal" picture that went out last. */
#pragma once

#include "types.h"

/* Of one source; all 0 before its first picture. */
typedef struct {
    GstClockTime taken; /* its newest picture, by its own word */
    GstClockTime delay; /* its pictures are placed so much later than they were taken */
} CamPictureTimeline;

/* Where the picture that was TAKEN and comes NOW is placed, after LAST, the place of the newest
 * picture of any source. The delay that this needs is made good at double speed, so that pictures
 * and sound, which has its own true times, are in step again after twice the delay. */
GstClockTime cam_picture_timeline_place(CamPictureTimeline *timeline, GstClockTime taken,
                                        GstClockTime now, GstClockTime last);
