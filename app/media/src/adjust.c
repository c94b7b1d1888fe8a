#include "adjust.h"

#define LUMA_BLACK 16
#define LUMA_MIDDLE 126

/* 0 → 0, 50 → 1, 100 → 2 */
static double gain(int value)
{
    return value / (double)CAM_CONTROL_NEUTRAL;
}

void cam_adjust_init(CamAdjust *adjust, const CamControls *controls,
                     const gboolean hardware[CAM_N_CONTROLS])
{
    int value[CAM_N_CONTROLS];
    double contrast, saturation, shift;

    adjust->active = FALSE;
    for (int i = 0; i < CAM_N_CONTROLS; i++) {
        value[i] = hardware[i] ? CAM_CONTROL_NEUTRAL : controls->value[i];
        adjust->active |= value[i] != CAM_CONTROL_NEUTRAL;
    }
    contrast = gain(value[CAM_CONTRAST]);
    saturation = gain(value[CAM_SATURATION]);
    /* Half of the luma range up or down. */
    shift = (value[CAM_BRIGHTNESS] - CAM_CONTROL_NEUTRAL) * 110 / 50.0;
    for (int i = 0; i < 256; i++) {
        double y = (i - LUMA_MIDDLE) * contrast + LUMA_MIDDLE + shift;
        double c = (i - 128) * saturation + 128;

        adjust->luma[i] = (guint8)CLAMP(y + 0.5, LUMA_BLACK, 235);
        adjust->chroma[i] = (guint8)CLAMP(c + 0.5, 16, 240);
    }
}

static void apply_plane(guint8 *data, int stride, int width, int height, const guint8 *table)
{
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++)
            data[x] = table[data[x]];
        data += stride;
    }
}

GstBuffer *cam_adjust_apply(const CamAdjust *adjust, GstBuffer *buffer, const GstVideoInfo *info)
{
    GstVideoFrame frame;

    if (!adjust->active)
        return buffer;
    if (!gst_buffer_is_writable(buffer) || !gst_buffer_is_all_memory_writable(buffer)) {
        GstBuffer *copy = gst_buffer_copy_deep(buffer);

        gst_buffer_unref(buffer);
        buffer = copy;
    }
    if (!gst_video_frame_map(&frame, info, buffer, GST_MAP_READWRITE))
        return buffer;
    for (guint i = 0; i < 3; i++)
        apply_plane(GST_VIDEO_FRAME_COMP_DATA(&frame, i), GST_VIDEO_FRAME_COMP_STRIDE(&frame, i),
                    GST_VIDEO_FRAME_COMP_WIDTH(&frame, i), GST_VIDEO_FRAME_COMP_HEIGHT(&frame, i),
                    i == 0 ? adjust->luma : adjust->chroma);
    gst_video_frame_unmap(&frame);
    return buffer;
}
