#include "jpeg_colours.h"
#include "log.h"

#include <turbojpeg.h>

#include <math.h>

/* Fixed point with this many bits behind the point. */
#define BITS 14
#define HALF (1 << (BITS - 1))

/* Luma has less, so that its products fit 16 bits and a vector holds many of them. */
#define LUMA_BITS 7

typedef struct {
    guint8 y_offset;
    guint16 y_y;    /* luma from luma, LUMA_BITS */
    int y_cb, y_cr; /* and what chroma adds to it */
    int cb_cb, cb_cr, cr_cb, cr_cr;
} Matrix;

static int fixed(double value)
{
    return (int)(value * (1 << BITS) + (value < 0 ? -0.5 : 0.5));
}

/* From the source's Kr and Kb to those of BT.601 (0.299 and 0.114), by way of RGB. */
static void matrix_init(Matrix *matrix, const GstVideoInfo *info)
{
    double kr = 0.2126, kb = 0.0722, kg, r_cr, b_cb, g_cb, g_cr, y_cb, y_cr, luma, chroma;
    gboolean full = info->colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255;

    gst_video_color_matrix_get_Kr_Kb(info->colorimetry.matrix, &kr, &kb);
    kg = 1 - kr - kb;
    r_cr = 2 * (1 - kr);
    b_cb = 2 * (1 - kb);
    g_cb = -kb * b_cb / kg;
    g_cr = -kr * r_cr / kg;
    y_cb = 0.587 * g_cb + 0.114 * b_cb;
    y_cr = 0.299 * r_cr + 0.587 * g_cr;
    luma = full ? 1 : 255 / 219.0;
    chroma = full ? 1 : 255 / 224.0;
    *matrix = (Matrix){
        .y_offset = full ? 0 : 16,
        .y_y = (guint16)lround(luma * (1 << LUMA_BITS)),
        .y_cb = fixed(y_cb * chroma),
        .y_cr = fixed(y_cr * chroma),
        .cb_cb = fixed((b_cb - y_cb) / 1.772 * chroma),
        .cb_cr = fixed(-y_cr / 1.772 * chroma),
        .cr_cb = fixed(-y_cb / 1.402 * chroma),
        .cr_cr = fixed((r_cr - y_cr) / 1.402 * chroma),
    };
}

static inline guint8 clamp_byte(int value)
{
    return (guint8)CLAMP(value, 0, 255);
}

/* Chroma of one line, and into SHIFT what it adds to each of the luma samples around. */
static void convert_chroma(const guint8 *cb_in, const guint8 *cr_in, guint8 *cb_out, guint8 *cr_out,
                           gint16 *shift, int samples, const Matrix *m)
{
    for (int i = 0; i < samples; i++) {
        int cb = cb_in[i] - 128, cr = cr_in[i] - 128;
        gint16 add = (gint16)((m->y_cb * cb + m->y_cr * cr + HALF) >> BITS);

        cb_out[i] = clamp_byte(128 + ((m->cb_cb * cb + m->cb_cr * cr + HALF) >> BITS));
        cr_out[i] = clamp_byte(128 + ((m->cr_cb * cb + m->cr_cr * cr + HALF) >> BITS));
        shift[2 * i] = add;
        shift[2 * i + 1] = add;
    }
}

static void convert_luma(const guint8 *restrict in, guint8 *restrict out,
                         const gint16 *restrict shift, int samples, const Matrix *m)
{
    const guint16 offset = m->y_offset, scale = m->y_y;

    for (int i = 0; i < samples; i++) {
        guint16 above = (guint16)(MAX(in[i], offset) - offset);
        guint16 scaled = (guint16)(above * scale + (1 << (LUMA_BITS - 1)));
        gint16 value = (gint16)((gint16)(scaled >> LUMA_BITS) + shift[i]);

        value = MAX(value, 0);
        out[i] = (guint8)MIN(value, 255);
    }
}

static const guint8 *line_of(const GstVideoFrame *frame, guint plane, int line)
{
    return (const guint8 *)GST_VIDEO_FRAME_PLANE_DATA(frame, plane) +
           (gsize)line * (gsize)GST_VIDEO_FRAME_PLANE_STRIDE(frame, plane);
}

static guint8 *line_in(const CamJpegPlanes *planes, int plane, int line)
{
    return planes->plane[plane] + (gsize)line * (gsize)planes->stride[plane];
}

static void scratch_free(gpointer data)
{
    g_byte_array_unref(data);
}

/* Fresh memory of this size costs more than the conversion, for the kernel clears it page by page;
 * it is kept as long as the thread. */
static guint8 *scratch(gsize size)
{
    static GPrivate buffer = G_PRIVATE_INIT(scratch_free);
    GByteArray *array = g_private_get(&buffer);

    if (!array) {
        array = g_byte_array_new();
        g_private_set(&buffer, array);
    }
    g_byte_array_set_size(array, (guint)size);
    return array->data;
}

static CamJpegPlanes layout(int width, int height, gint16 **shift)
{
    int half_width = (width + 1) / 2, half_height = (height + 1) / 2;
    gsize shift_size = (gsize)half_width * 2 * sizeof(gint16);
    gsize luma = (gsize)width * (gsize)height, chroma = (gsize)half_width * (gsize)half_height;
    guint8 *data = scratch(shift_size + luma + 2 * chroma);

    *shift = (gint16 *)(gpointer)data;
    data += shift_size;
    return (CamJpegPlanes){.plane = {data, data + luma, data + luma + chroma},
                           .stride = {width, half_width, half_width}};
}

CamJpegPlanes cam_jpeg_planes(const GstVideoFrame *frame)
{
    int width = GST_VIDEO_FRAME_WIDTH(frame), height = GST_VIDEO_FRAME_HEIGHT(frame);
    gint16 *shift;
    CamJpegPlanes planes = layout(width, height, &shift);
    Matrix matrix;

    matrix_init(&matrix, &frame->info);
    for (int y = 0; y < height; y++) {
        if (y % 2 == 0)
            convert_chroma(line_of(frame, 1, y / 2), line_of(frame, 2, y / 2),
                           line_in(&planes, 1, y / 2), line_in(&planes, 2, y / 2), shift,
                           (width + 1) / 2, &matrix);
        convert_luma(line_of(frame, 0, y), line_in(&planes, 0, y), shift, width, &matrix);
    }
    return planes;
}

GBytes *cam_jpeg_encode(const GstVideoFrame *video, int quality)
{
    CamJpegPlanes planes = cam_jpeg_planes(video);
    tjhandle compressor = tjInitCompress();
    unsigned char *jpeg = NULL;
    unsigned long size = 0;
    GBytes *bytes = NULL;
    /* The fast transform is not exact enough for the highest qualities. */
    int flags = quality < 95 ? TJFLAG_FASTDCT : TJFLAG_ACCURATEDCT;

    if (tjCompressFromYUVPlanes(compressor, (const unsigned char **)planes.plane,
                                GST_VIDEO_FRAME_WIDTH(video), planes.stride,
                                GST_VIDEO_FRAME_HEIGHT(video), TJSAMP_420, &jpeg, &size, quality,
                                flags) == 0)
        bytes = g_bytes_new(jpeg, size);
    else
        cam_log(CAM_LOG_ERROR, "jpeg", "%s", tjGetErrorStr2(compressor));
    tjFree(jpeg);
    tjDestroy(compressor);
    return bytes;
}
