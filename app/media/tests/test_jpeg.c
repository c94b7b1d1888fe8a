#include "jpeg_colours.h"

#include <gst/gst.h>

typedef struct {
    int y, cb, cr;
} Colour;

/* One colour through the conversion. */
static Colour convert(const char *colorimetry, Colour in)
{
    GstVideoInfo info;
    GstVideoFrame frame;
    GstBuffer *buffer;
    CamJpegPlanes planes;
    Colour out;
    int values[3] = {in.y, in.cb, in.cr};

    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_I420, 18, 18);
    g_assert_true(gst_video_colorimetry_from_string(&info.colorimetry, colorimetry));
    buffer = gst_buffer_new_allocate(NULL, info.size, NULL);
    g_assert_true(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
    for (guint i = 0; i < 3; i++) {
        memset(GST_VIDEO_FRAME_PLANE_DATA(&frame, i), values[i],
               (gsize)GST_VIDEO_FRAME_PLANE_STRIDE(&frame, i) *
                   (gsize)GST_VIDEO_FRAME_COMP_HEIGHT(&frame, i));
    }
    planes = cam_jpeg_planes(&frame);
    out = (Colour){planes.plane[0][18 * 18 - 1], planes.plane[1][9 * 9 - 1],
                   planes.plane[2][9 * 9 - 1]};
    gst_video_frame_unmap(&frame);
    gst_buffer_unref(buffer);
    return out;
}

static void check(const char *colorimetry, Colour in, Colour expected)
{
    Colour out = convert(colorimetry, in);

    g_assert_cmpint(ABS(out.y - expected.y), <=, 2);
    g_assert_cmpint(ABS(out.cb - expected.cb), <=, 2);
    g_assert_cmpint(ABS(out.cr - expected.cr), <=, 2);
}

static void test_range(void)
{
    check("bt709", (Colour){235, 128, 128}, (Colour){255, 128, 128});
    check("bt709", (Colour){16, 128, 128}, (Colour){0, 128, 128});
    check("bt601", (Colour){126, 128, 128}, (Colour){128, 128, 128});
    /* Beyond the range: clipped. */
    check("bt709", (Colour){255, 128, 128}, (Colour){255, 128, 128});
    check("bt709", (Colour){0, 128, 128}, (Colour){0, 128, 128});
}

/* Pure red and blue, as each standard writes them, are JPEG's red and blue. */
static void test_matrix(void)
{
    check("bt709", (Colour){63, 102, 240}, (Colour){76, 85, 255});
    check("bt601", (Colour){81, 90, 240}, (Colour){76, 85, 255});
    check("bt709", (Colour){32, 240, 118}, (Colour){29, 255, 107});
}

static void test_jpeg_colours_stay(void)
{
    check("1:4:0:0", (Colour){76, 85, 255}, (Colour){76, 85, 255});
    check("1:4:0:0", (Colour){10, 200, 30}, (Colour){10, 200, 30});
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/jpeg/range", test_range);
    g_test_add_func("/jpeg/matrix", test_matrix);
    g_test_add_func("/jpeg/identity", test_jpeg_colours_stay);
    return g_test_run();
}
