/* When a camera counts as stalled. */
#include "camera_stall.h"

#define START (1000 * GST_SECOND)

/* How often a camera is opened anew that gives a picture each GAP, from NOW on. */
static guint reopened(CamStall *stall, GstClockTime gap, GstClockTime *now, GstClockTime duration)
{
    const GstClockTime tick = 250 * GST_MSECOND, end_at = *now + duration;
    GstClockTime next = *now + gap;
    guint n = 0;

    cam_stall_opened(stall, *now);
    for (; *now < end_at; *now += tick) {
        if (*now >= next) {
            cam_stall_picture(stall, 30, *now);
            next = *now + gap;
        } else if (cam_stall_check(stall, 30, *now)) {
            cam_stall_opened(stall, *now);
            n++;
        }
    }
    return n;
}

static void test_stall(void)
{
    GstClockTime now = START;
    CamStall stall;

    cam_stall_init(&stall);
    g_assert_cmpuint(reopened(&stall, 100 * GST_MSECOND, &now, 60 * GST_SECOND), ==, 0);
    /* At night: 1.5 s and 3 s are not enough, 6 s are, and stay. */
    g_assert_cmpuint(reopened(&stall, 4 * GST_SECOND, &now, 3600 * GST_SECOND), ==, 2);
    /* By day for long enough, the least limit is back. */
    g_assert_cmpuint(reopened(&stall, 100 * GST_MSECOND, &now, 1300 * GST_SECOND), ==, 0);
    g_assert_null(cam_stall_check(&stall, 30, stall.newest + 1500 * GST_MSECOND));
    g_assert_nonnull(cam_stall_check(&stall, 30, stall.newest + 1501 * GST_MSECOND));
}

/* The limits of a camera that gives nothing any more, and of one that never begins. */
static void test_stall_limits(void)
{
    const int first[] = {5, 10, 20, 40, 40};
    const int between_ms[] = {1500, 3000, 6000, 8000, 8000};
    CamStall stall;

    cam_stall_init(&stall);
    for (guint i = 0; i < G_N_ELEMENTS(first); i++) {
        cam_stall_opened(&stall, START);
        g_assert_null(cam_stall_check(&stall, 30, START + first[i] * GST_SECOND));
        g_assert_nonnull(cam_stall_check(&stall, 30, START + first[i] * GST_SECOND + 1));
    }
    for (guint i = 0; i < G_N_ELEMENTS(between_ms); i++) {
        cam_stall_opened(&stall, START);
        cam_stall_picture(&stall, 30, START);
        g_assert_null(cam_stall_check(&stall, 30, START + between_ms[i] * GST_MSECOND));
        g_assert_nonnull(cam_stall_check(&stall, 30, START + between_ms[i] * GST_MSECOND + 1));
    }
    /* A low rate has a longer one from the start. */
    cam_stall_init(&stall);
    cam_stall_opened(&stall, START);
    cam_stall_picture(&stall, 1, START);
    g_assert_null(cam_stall_check(&stall, 1, START + 4 * GST_SECOND));
    g_assert_nonnull(cam_stall_check(&stall, 1, START + 4 * GST_SECOND + 1));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/camera-stall/stall", test_stall);
    g_test_add_func("/camera-stall/stall-limits", test_stall_limits);
    return g_test_run();
}
