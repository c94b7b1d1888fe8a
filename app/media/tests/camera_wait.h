/* What tests of cameras wait for. */
#pragma once

#include "camera.h"
#include "ending.h"

static inline gboolean is_streaming(gpointer camera)
{
    return cam_camera_is_streaming(camera);
}

static inline gboolean has_picture(gpointer camera)
{
    CamFrame frame;

    if (cam_camera_take_frame(camera, &frame) != CAM_FRAME_READY)
        return FALSE;
    cam_frame_clear(&frame);
    return TRUE;
}

/* Nothing of a closed camera is still on its way out. */
static inline gboolean is_closed(gpointer unused)
{
    return !cam_endings_pending();
}
