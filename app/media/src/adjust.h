/* Brightness, contrast and saturation in software: tables over I420. */
#pragma once

#include "types.h"

#include <gst/video/video.h>

typedef struct {
    gboolean active; /* FALSE: every table is the identity */
    guint8 luma[256], chroma[256];
} CamAdjust;

/* Controls that HARDWARE marks are taken as neutral here. */
void cam_adjust_init(CamAdjust *adjust, const CamControls *controls,
                     const gboolean hardware[CAM_N_CONTROLS]);

/* Returns BUFFER adjusted: changed in place when it is writable, else a copy. Takes BUFFER. */
GstBuffer *cam_adjust_apply(const CamAdjust *adjust, GstBuffer *buffer, const GstVideoInfo *info);
