/* The test tone: a beep of 1 kHz, 100 ms long, at each whole second of the wall clock, and a soft
 * 220 Hz between them. */
#pragma once

#include <glib.h>

/* Stereo samples at 48 kHz, the first at WALL_US. */
void cam_audio_tone(gint16 *samples, guint frames, gint64 wall_us);
