/* Decodes a camera's native H.264 for those who need pixels. */
#pragma once

#include "types.h"

typedef struct _CamDecoder CamDecoder;

/* A decoded I420 frame, on the decoder's thread; BUFFER is taken. */
typedef void (*CamDecoderOutput)(CamDecoder *decoder, GstBuffer *buffer, GstCaps *caps,
                                 GstClockTime pts, gpointer user_data);

/* NULL when this machine has no H.264 decoder. */
CamDecoder *cam_decoder_new(CamDecoderOutput output, gpointer user_data);
/* Waits for its thread, which may hang: see cam_end_apart(). */
void cam_decoder_free(CamDecoder *decoder);

/* Borrows AU; the first must be a key frame. */
void cam_decoder_push(CamDecoder *decoder, GstBuffer *au);

/* It reported an error, or is fed and gives nothing: no more frames are to be expected. */
gboolean cam_decoder_is_broken(CamDecoder *decoder);
