/* One running audio encoder: PCM in, units out, both on the helper's time line. */
#pragma once

#include "types.h"

typedef struct _CamAudioEncoder CamAudioEncoder;

typedef struct {
    /* A unit, on the encoder's thread; UNIT is taken. */
    void (*output)(CamAudioEncoder *encoder, GstBuffer *unit, GstCaps *caps, gpointer user_data);
    /* It broke and will give nothing more. On a thread of its own: do not free it from there. */
    void (*failed)(CamAudioEncoder *encoder, const char *message, gpointer user_data);
} CamAudioEncoderEvents;

/* Not for PCM. NULL when it cannot be built. */
CamAudioEncoder *cam_audio_encoder_new(CamAudioCodec codec, const CamAudioEncoderEvents *events,
                                       gpointer user_data);
/* Waits for its thread; no event comes afterwards. */
void cam_audio_encoder_free(CamAudioEncoder *encoder);

/* Borrows PCM, which has pts and duration. FALSE: it does not keep up, this is dropped. */
gboolean cam_audio_encoder_push(CamAudioEncoder *encoder, GstBuffer *pcm);
