#include "picture.h"

#include <string.h>

typedef struct {
    GstVideoInfo info;
    guint8 *data;
    CamImage image;
} Picture;

static Picture picture_new(int width, int height)
{
    Picture picture;

    gst_video_info_set_format(&picture.info, GST_VIDEO_FORMAT_I420, (guint)width, (guint)height);
    picture.data = g_malloc0(picture.info.size);
    picture.image = cam_image_of(picture.data, &picture.info);
    cam_picture_test_background(&picture.image);
    return picture;
}

static gboolean read_number(const Picture *picture, guint32 *number)
{
    return cam_barcode_read(picture->image.plane[0], picture->image.stride[0], picture->image.width,
                            picture->image.height, number);
}

static void test_cells(void)
{
    g_assert_cmpint(cam_barcode_cell(1280), ==, 32);
    g_assert_cmpint(cam_barcode_cell(1920), ==, 48);
    g_assert_cmpint(cam_barcode_cell(640), ==, 16);
    g_assert_cmpint(cam_barcode_cell(720), ==, 18);
    g_assert_cmpint(cam_barcode_cell(16), ==, 8);
}

static void test_barcode(void)
{
    static const int sizes[][2] = {{1280, 720}, {1920, 1080}, {640, 360}, {640, 480}, {280, 64}};
    static const guint32 numbers[] = {0,          1,          2,          0x55555555,
                                      0xaaaaaaaa, 0x80000000, 0xffffffff, 12345};

    for (guint s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Picture picture = picture_new(sizes[s][0], sizes[s][1]);

        for (guint n = 0; n < G_N_ELEMENTS(numbers); n++) {
            guint32 number;

            cam_picture_test_frame(&picture.image, numbers[n], 1234567890123);
            g_assert_true(read_number(&picture, &number));
            g_assert_cmpuint(number, ==, numbers[n]);
        }
        g_free(picture.data);
    }
}

static void test_no_barcode(void)
{
    Picture picture = picture_new(1280, 720);
    guint32 number;

    g_assert_false(read_number(&picture, &number));
    cam_picture_no_signal(&picture.image, 0);
    g_assert_false(read_number(&picture, &number));
    g_free(picture.data);
}

/* Whatever the size: nothing is written outside (the address sanitizer watches). */
static void test_all_sizes(void)
{
    for (int width = 16; width <= 720; width += 14) {
        for (int height = 16; height <= 480; height += 22) {
            Picture picture = picture_new(width, height);

            cam_picture_test_frame(&picture.image, G_MAXUINT32, 1234567890123);
            cam_picture_no_signal(&picture.image, 1234567890123);
            g_free(picture.data);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/picture/cells", test_cells);
    g_test_add_func("/picture/barcode", test_barcode);
    g_test_add_func("/picture/no-barcode", test_no_barcode);
    g_test_add_func("/picture/all-sizes", test_all_sizes);
    return g_test_run();
}
