/* A camera's sound: captured and, once for each codec, encoded while somebody wants it.
 * Thread-safe; reference counted like a hub. */
#pragma once

#include "types.h"

/* What sources deliver and CAM_AUDIO_PCM is. */
#define CAM_AUDIO_RATE 48000
#define CAM_AUDIO_CHANNELS 2

typedef struct _CamAudio CamAudio;

typedef struct {
    /* UNIT is taken: one frame of the codec (20 ms of PCM and PCMU); pts and duration are those of
     * its sound on the helper's time line, so a gap in the sound is a gap in the pts. FALSE: it is
     * lost. Runs under the sound's lock on one of its threads: must not block nor call here. */
    gboolean (*deliver)(GstBuffer *unit, gpointer user_data);
    gpointer user_data;
} CamAudioConsumer;

/* SPEC is not of type none. */
CamAudio *cam_audio_new(const CamAudioSpec *spec, int camera);
CamAudio *cam_audio_ref(CamAudio *audio);
void cam_audio_unref(CamAudio *audio);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CamAudio, cam_audio_unref)
/* The camera is gone: nothing comes any more. Main thread. */
void cam_audio_close(CamAudio *audio);

/* Never blocks. 0: this machine has no encoder for it, see cam_audio_caps(). */
guint cam_audio_attach(CamAudio *audio, CamAudioCodec codec, const CamAudioConsumer *consumer);
/* After it returns the consumer is not called any more. 0 is allowed. */
void cam_audio_detach(CamAudio *audio, guint id);

/* What its units are, from the start on: rate, channels, codec_data. A reference; NULL where there
 * is no encoder. */
GstCaps *cam_audio_caps(CamAudio *audio, CamAudioCodec codec);
/* A unit of silence with duration and without pts, to fill a gap with; NULL where there is no
 * encoder. */
GstBuffer *cam_audio_silence(CamAudio *audio, CamAudioCodec codec);

JsonObject *cam_audio_stats(CamAudio *audio);
