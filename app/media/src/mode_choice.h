/* Which of a device's modes comes closest to what is asked for. */
#pragma once

#include "types.h"

typedef enum { CAM_FORMAT_RAW, CAM_FORMAT_MJPEG, CAM_FORMAT_H264 } CamFormatKind;

typedef struct {
    CamFormatKind kind;
    guint32 fourcc;
    int width, height;
    int fps_n, fps_d;
} CamDeviceMode;

/* The index of the best of N modes, -1 when N is 0. */
int cam_mode_choose(const CamDeviceMode *modes, guint n, const CamMode *wanted);
