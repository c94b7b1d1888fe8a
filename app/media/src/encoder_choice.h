/* Which H.264 encoders work on this machine. */
#pragma once

#include <glib.h>

/* Tries each known encoder once; call after gst_init(). */
void cam_encoder_choice_probe(void);

/* NULL-terminated, best first. */
const char *const *cam_encoder_choice_all(void);

/* The one in use, NULL when none works. */
const char *cam_encoder_choice(void);
