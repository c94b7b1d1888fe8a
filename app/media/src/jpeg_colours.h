/* JPEG knows one kind of YCbCr: BT.601 in full range. Video is mostly BT.709, 16 … 235. */
#pragma once

#include <gst/video/video.h>

typedef struct {
    guint8 *plane[3];
    int stride[3];
} CamJpegPlanes;

/* FRAME, mapped I420, in the colours of JPEG. The planes belong to the calling thread and hold
 * until its next call. */
CamJpegPlanes cam_jpeg_planes(const GstVideoFrame *frame);

/* FRAME, mapped I420, as JPEG; NULL when it cannot be. */
GBytes *cam_jpeg_encode(const GstVideoFrame *frame, int quality);
