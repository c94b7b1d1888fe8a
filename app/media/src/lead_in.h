/* Recordings have a key frame every other second, but a viewer asks for any moment: from there up
 * to the next key frame the pictures are encoded anew. H.264 alone; one thread at a time. */
#pragma once

#include "timeline.h"

typedef struct _CamLeadIn CamLeadIn;

gboolean cam_lead_in_works(CamCodec codec);

/* CURSOR stands at the key frame before TIME and goes on to the next one. NULL: that does not work
 * here, and CURSOR may stand anywhere. */
CamLeadIn *cam_lead_in_new(CamCursor *cursor, CamTimeline *timeline, GstClockTime time);
void cam_lead_in_free(CamLeadIn *lead_in);

/* The next picture; NULL: that was the last one before the key frame, or it failed. */
GstBuffer *cam_lead_in_next(CamLeadIn *lead_in);
