/* Where sound comes from. A source runs a thread of its own, on which it calls back, and goes on
 * trying when its device is not there. */
#pragma once

#include "types.h"

typedef struct _CamAudioSource CamAudioSource;

typedef struct {
    /* 20 ms of S16LE, 48 kHz, stereo, with pts and duration; PCM is taken. */
    void (*pcm)(CamAudioSource *source, GstBuffer *pcm, gpointer owner);
    /* The device is not there (any more), REASON says why; sound comes when it is back. */
    void (*lost)(CamAudioSource *source, const char *reason, gpointer owner);
} CamAudioSourceEvents;

typedef struct {
    gpointer (*run)(gpointer source); /* the thread; returns when it is stopped */
    void (*clear)(CamAudioSource *source);
} CamAudioSourceClass;

struct _CamAudioSource {
    const CamAudioSourceClass *klass;
    const CamAudioSourceEvents *events;
    gpointer owner;
    GThread *thread;
    GMutex lock;
    GCond wake;
    gboolean stopping; /* under the lock */
};

CamAudioSource *cam_audio_source_new(const CamAudioSpec *spec, const CamAudioSourceEvents *events,
                                     gpointer owner);
/* Nothing is called back before. */
void cam_audio_source_start(CamAudioSource *source);
/* Stops and frees; waits for its thread, and so for its device. Not from a callback. */
void cam_audio_source_free(CamAudioSource *source);

/* For the sources themselves: FALSE when it is to stop. */
gboolean cam_audio_source_sleep_until(CamAudioSource *source, GstClockTime when);
/* Takes PCM. */
void cam_audio_source_deliver(CamAudioSource *source, GstBuffer *pcm, GstClockTime pts);

CamAudioSource *cam_audio_source_test_new(void);
CamAudioSource *cam_audio_source_alsa_new(const char *device);
