/* Times for the blocks of a sound card: its clock is not the helper's, and when a block is read
 * depends on who else wants the processor. */
#pragma once

#include "types.h"

typedef struct {
    GstClockTime next; /* where the next block begins; 0: not known yet */
} CamAudioTimeline;

/* When a block of DURATION, read at NOW, began: one after the other without a gap, drawn gently to
 * the helper's clock; anew where it is too far off (samples were lost). FALSE: the device delivers
 * faster than time goes by, the block is not to be used. */
gboolean cam_audio_timeline_place(CamAudioTimeline *timeline, GstClockTime now,
                                  GstClockTime duration, GstClockTime *pts);
