/* The sound beside the pictures that one RTSP client gets. */
#pragma once

#include "audio.h"

typedef struct _CamRtspSound CamRtspSound;

/* Puts the elements for CODEC into BIN, the payloader as "pay1". FALSE: no encoder for it here, BIN
 * is as it was. */
gboolean cam_rtsp_sound_build(GstBin *bin, CamAudioCodec codec);

/* NULL when BIN has no such elements. */
CamRtspSound *cam_rtsp_sound_new(CamAudio *audio, GstBin *bin);
void cam_rtsp_sound_free(CamRtspSound *sound);

/* The first picture's time: sound goes from there on. Must be called for anything to be sent, and
 * blocks nothing. Later calls do nothing. */
void cam_rtsp_sound_begin(CamRtspSound *sound, GstClockTime pts);
/* FALSE: it is not listened to meanwhile. */
void cam_rtsp_sound_set_playing(CamRtspSound *sound, gboolean playing);
/* No more is wanted. */
void cam_rtsp_sound_end(CamRtspSound *sound);
/* Since when the client has taken nothing, µs of the monotonic clock; 0: it takes what comes. */
gint64 cam_rtsp_sound_stuck_since(CamRtspSound *sound);
