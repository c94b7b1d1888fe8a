#include "adjust.h"

#include <string.h>

static const gboolean no_hardware[CAM_N_CONTROLS] = {FALSE, FALSE, FALSE};

static void test_neutral(void)
{
    CamControls controls = {{50, 50, 50}};
    CamAdjust adjust;

    cam_adjust_init(&adjust, &controls, no_hardware);
    g_assert_false(adjust.active);
}

static void test_hardware_is_left_alone(void)
{
    CamControls controls = {{90, 50, 50}};
    gboolean hardware[CAM_N_CONTROLS] = {TRUE, FALSE, FALSE};
    CamAdjust adjust;

    cam_adjust_init(&adjust, &controls, hardware);
    g_assert_false(adjust.active);
}

static void test_directions(void)
{
    CamAdjust adjust;

    cam_adjust_init(&adjust, &(CamControls){{80, 50, 50}}, no_hardware);
    g_assert_true(adjust.active);
    g_assert_cmpint(adjust.luma[100], >, 100);
    g_assert_cmpint(adjust.chroma[60], ==, 60);
    cam_adjust_init(&adjust, &(CamControls){{20, 50, 50}}, no_hardware);
    g_assert_cmpint(adjust.luma[100], <, 100);
    cam_adjust_init(&adjust, &(CamControls){{50, 80, 50}}, no_hardware);
    g_assert_cmpint(adjust.luma[200], >, 200);
    g_assert_cmpint(adjust.luma[60], <, 60);
    cam_adjust_init(&adjust, &(CamControls){{50, 50, 0}}, no_hardware);
    g_assert_cmpint(adjust.chroma[200], ==, 128);
    g_assert_cmpint(adjust.luma[77], ==, 77);
}

static void test_tables_stay_in_video_range(void)
{
    for (int b = 0; b <= 100; b += 25) {
        for (int c = 0; c <= 100; c += 25) {
            CamAdjust adjust;

            cam_adjust_init(&adjust, &(CamControls){{b, c, 100}}, no_hardware);
            for (int i = 0; i < 256; i++) {
                if (!adjust.active)
                    continue;
                g_assert_cmpint(adjust.luma[i], >=, 16);
                g_assert_cmpint(adjust.luma[i], <=, 235);
                g_assert_cmpint(adjust.chroma[i], >=, 16);
                g_assert_cmpint(adjust.chroma[i], <=, 240);
            }
        }
    }
}

/* A frame that somebody else holds must not change under them. */
static void test_shared_frame_is_copied(void)
{
    GstVideoInfo info;
    GstBuffer *buffer, *result;
    CamAdjust adjust;
    guint8 byte;

    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_I420, 16, 16);
    buffer = gst_buffer_new_allocate(NULL, info.size, NULL);
    gst_buffer_memset(buffer, 0, 100, info.size);
    cam_adjust_init(&adjust, &(CamControls){{90, 50, 50}}, no_hardware);
    result = cam_adjust_apply(&adjust, gst_buffer_ref(buffer), &info);
    g_assert_true(result != buffer);
    gst_buffer_extract(buffer, 0, &byte, 1);
    g_assert_cmpint(byte, ==, 100);
    gst_buffer_extract(result, 0, &byte, 1);
    g_assert_cmpint(byte, ==, adjust.luma[100]);
    gst_buffer_unref(result);
    gst_buffer_unref(buffer);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/adjust/neutral", test_neutral);
    g_test_add_func("/adjust/hardware", test_hardware_is_left_alone);
    g_test_add_func("/adjust/directions", test_directions);
    g_test_add_func("/adjust/range", test_tables_stay_in_video_range);
    g_test_add_func("/adjust/shared", test_shared_frame_is_copied);
    return g_test_run();
}
