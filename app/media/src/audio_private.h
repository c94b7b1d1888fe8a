#pragma once

#include "audio.h"
#include "audio_encoder.h"
#include "audio_source.h"

typedef struct {
    guint id;
    CamAudioCodec codec;
    CamAudioConsumer calls;
} CamAudioListener;

struct _CamAudio {
    gatomicrefcount refs;
    int camera;
    CamAudioSpec spec;

    GMutex build_lock; /* begin and end of source and encoders; taken before lock */

    GMutex lock;          /* all below */
    GPtrArray *listeners; /* CamAudioListener */
    guint next_id;
    gboolean closed;
    int closing;                /* sources on their way out */
    GstClockTime closing_since; /* of the last one */
    GstClockTime idle_since;
    CamAudioSource *source;
    CamAudioEncoder *encoders[CAM_N_AUDIO_CODECS];
    GstClockTime unused_since[CAM_N_AUDIO_CODECS];
    char *reason; /* why there is no sound, or NULL */
    gboolean heard;
    double power; /* mean square of a sample, smoothed */
};

/* With lock held: the level of PCM, which is a sign of life. */
void cam_audio_measure(CamAudio *audio, GstBuffer *pcm);
