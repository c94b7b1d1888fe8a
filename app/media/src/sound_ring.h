/* The newest sound of a camera in one codec, for pre-rolls. Thread-safe. */
#pragma once

#include "audio.h"
#include "ring.h"

typedef struct _CamSoundRing CamSoundRing;

/* NULL: this machine has no encoder for CODEC. */
CamSoundRing *cam_sound_ring_new(CamAudio *audio, CamAudioCodec codec, gsize max_bytes);
void cam_sound_ring_free(CamSoundRing *ring);
/* All units from FROM on. */
void cam_sound_ring_replay(CamSoundRing *ring, GstClockTime from, CamRingFunc func,
                           gpointer user_data);
