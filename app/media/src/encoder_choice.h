/* Which video encoders work on this machine. */
#pragma once

#include "types.h"

/* Tries each known encoder once; call after gst_init(). */
void cam_encoder_choice_probe(void);

/* NULL-terminated, best first; empty where this machine cannot encode CODEC. */
const char *const *cam_encoder_choice_all(CamVideoCodec codec);

/* The H.264 encoder in use, NULL when none works. */
const char *cam_encoder_choice(void);
