/* How long a camera may give nothing before it is taken for lost and opened anew. Some cameras
 * really take long: to their first picture, or with each one (long exposures at night, slow
 * boards). A limit that has not sufficed is therefore doubled: one that is always too short would
 * have the camera opened anew for ever. */
#pragma once

#include "types.h"

typedef struct {
    GstClockTime first;  /* the limit to the first picture */
    guint doublings;     /* of the limit between two pictures */
    GstClockTime since;  /* half that limit has been enough */
    GstClockTime newest; /* the newest picture came, or the camera was opened */
    gboolean begun;      /* it was a picture */
} CamStall;

/* NOW is cam_now(), FPS the camera's nominal rate. */
void cam_stall_init(CamStall *stall);
void cam_stall_opened(CamStall *stall, GstClockTime now);
void cam_stall_picture(CamStall *stall, int fps, GstClockTime now);
/* Why the camera is to be opened anew; NULL: it is not. */
const char *cam_stall_check(CamStall *stall, int fps, GstClockTime now);
