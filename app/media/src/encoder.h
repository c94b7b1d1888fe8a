/* One running video encoder: raw frames in, access units out, both on the helper's time line. */
#pragma once

#include "types.h"

typedef struct _CamEncoder CamEncoder;

typedef struct {
    /* An access unit, on the encoder's thread; AU is taken: byte-stream (or a JPEG), one whole
     * picture, pts on the time line, DELTA_UNIT unless it is a key frame with its parameter sets.
     */
    void (*output)(CamEncoder *encoder, GstBuffer *au, gpointer user_data);
    /* It broke and will give nothing more. On a thread of its own: do not free it from there. */
    void (*failed)(CamEncoder *encoder, const char *message, gpointer user_data);
} CamEncoderEvents;

/* FACTORY is an element of cam_encoder_choice_all(config->codec). NULL when it cannot be built. */
CamEncoder *cam_encoder_new(const char *factory, const CamStreamConfig *config,
                            const CamEncoderEvents *events, gpointer user_data);
/* Waits for its threads, which may hang: see cam_end_apart(). No event comes afterwards. */
void cam_encoder_free(CamEncoder *encoder);

/* "" before the first frame. */
const char *cam_encoder_colorimetry(CamEncoder *encoder);

/* Borrows BUFFER and CAPS. FALSE: a second's worth of frames waits already, this one is dropped. */
gboolean cam_encoder_push(CamEncoder *encoder, GstBuffer *buffer, GstCaps *caps, GstClockTime pts);

/* The next frame becomes a key frame. */
void cam_encoder_force_key(CamEncoder *encoder);

/* Sum and number of the encode times since the last call. */
void cam_encoder_take_times(CamEncoder *encoder, guint64 *total_us, guint *frames);
