#include "mode_choice.h"
#include "v4l2_controls.h"

static const CamDeviceMode webcam[] = {
    {CAM_FORMAT_RAW, 1, 640, 480, 30, 1},           {CAM_FORMAT_RAW, 1, 1280, 720, 10, 1},
    {CAM_FORMAT_RAW, 1, 1920, 1080, 5, 1},          {CAM_FORMAT_MJPEG, 2, 640, 480, 30, 1},
    {CAM_FORMAT_MJPEG, 2, 1280, 720, 30, 1},        {CAM_FORMAT_MJPEG, 2, 1280, 720, 60, 1},
    {CAM_FORMAT_MJPEG, 2, 1920, 1080, 30000, 1001},
};

static int choose(int width, int height, int fps)
{
    return cam_mode_choose(webcam, G_N_ELEMENTS(webcam), &(CamMode){width, height, fps});
}

static void test_formats(void)
{
    /* Raw where it is small, compressed where raw is slow. */
    g_assert_cmpint(choose(640, 480, 30), ==, 0);
    g_assert_cmpint(choose(1280, 720, 30), ==, 4);
    g_assert_cmpint(choose(1280, 720, 60), ==, 5);
    /* 29.97 is 30. */
    g_assert_cmpint(choose(1920, 1080, 30), ==, 6);
    /* Raw would do at this rate, but decoding is cheaper than the bus. */
    g_assert_cmpint(choose(1280, 720, 10), ==, 4);
}

static void test_nearest_size(void)
{
    g_assert_cmpint(choose(1300, 740, 30), ==, 4);
    g_assert_cmpint(choose(7680, 4320, 30), ==, 6);
    g_assert_cmpint(choose(16, 16, 30), ==, 0);
}

static void test_native_h264_first(void)
{
    CamDeviceMode modes[] = {{CAM_FORMAT_RAW, 1, 1280, 720, 30, 1},
                             {CAM_FORMAT_MJPEG, 2, 1280, 720, 30, 1},
                             {CAM_FORMAT_H264, 3, 1280, 720, 30, 1},
                             {CAM_FORMAT_MJPEG, 2, 640, 360, 30, 1}};

    g_assert_cmpint(cam_mode_choose(modes, 4, &(CamMode){1280, 720, 30}), ==, 2);
    g_assert_cmpint(cam_mode_choose(modes, 4, &(CamMode){640, 360, 30}), ==, 3);
    g_assert_cmpint(cam_mode_choose(modes, 0, &(CamMode){640, 360, 30}), ==, -1);
}

static void test_control_scale(void)
{
    g_assert_cmpint(cam_v4l2_control_scale(50, 0, 255, 1, 128), ==, 128);
    g_assert_cmpint(cam_v4l2_control_scale(0, 0, 255, 1, 128), ==, 0);
    g_assert_cmpint(cam_v4l2_control_scale(100, 0, 255, 1, 128), ==, 255);
    g_assert_cmpint(cam_v4l2_control_scale(25, 0, 255, 1, 128), ==, 64);
    g_assert_cmpint(cam_v4l2_control_scale(75, -64, 64, 1, 0), ==, 32);
    /* A default at the end of the range, a coarse step, the whole of an int. */
    g_assert_cmpint(cam_v4l2_control_scale(20, 0, 10, 1, 0), ==, 0);
    g_assert_cmpint(cam_v4l2_control_scale(60, 0, 100, 16, 48), ==, 64);
    g_assert_cmpint(cam_v4l2_control_scale(100, 0, 100, 16, 48), <=, 100);
    g_assert_cmpint(cam_v4l2_control_scale(0, G_MININT, G_MAXINT, 1, 0), ==, G_MININT);
    g_assert_cmpint(cam_v4l2_control_scale(100, G_MININT, G_MAXINT, 1, 0), ==, G_MAXINT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mode-choice/formats", test_formats);
    g_test_add_func("/mode-choice/nearest", test_nearest_size);
    g_test_add_func("/mode-choice/native", test_native_h264_first);
    g_test_add_func("/mode-choice/controls", test_control_scale);
    return g_test_run();
}
