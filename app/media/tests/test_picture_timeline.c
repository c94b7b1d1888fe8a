/* Where pictures that come late, early or with wrong times are placed. */
#include "picture_timeline.h"

#define START (1000 * GST_SECOND)
#define INTERVAL (100 * GST_MSECOND)

/* Later than all before it, never in the future, and in the end at its own time again. */
static void test_times(void)
{
    const GstClockTime latency = 2 * GST_SECOND;
    CamPictureTimeline timeline = {0};
    GstClockTime last = START;

    for (int n = 0; n < 50; n++) {
        GstClockTime now = START + 1 + (GstClockTime)n * INTERVAL, taken = now - latency;
        GstClockTime pts = cam_picture_timeline_place(&timeline, taken, now, last);

        g_assert_cmpuint(pts, >, last);
        g_assert_cmpuint(pts, >=, taken);
        g_assert_cmpuint(pts, <=, now + GST_MSECOND);
        if (n > 41)
            g_assert_cmpuint(pts, ==, taken);
        last = pts;
    }
}

/* Pictures that were 2 s late come at once: they are not placed in the future. */
static void test_prompt_again(void)
{
    CamPictureTimeline timeline = {0};
    GstClockTime last = START;

    for (int n = 0; n < 50; n++) {
        GstClockTime now = START + 1 + (GstClockTime)n * INTERVAL;
        GstClockTime taken = n < 5 ? now - 2 * GST_SECOND : now;
        GstClockTime pts = cam_picture_timeline_place(&timeline, taken, now, last);

        g_assert_cmpuint(pts, >, last);
        g_assert_cmpuint(pts, <=, MAX(now, last + GST_MSECOND));
        last = pts;
    }
}

/* A little ahead is where a clip's loop begins, or a camera's clock: the times are kept. */
static void test_ahead(void)
{
    CamPictureTimeline timeline = {0};
    GstClockTime last = START;

    for (int n = 1; n < 5; n++) {
        GstClockTime now = START + (GstClockTime)n * INTERVAL, taken = now + INTERVAL / 2;

        last = cam_picture_timeline_place(&timeline, taken, now, last);
        g_assert_cmpuint(last, ==, taken);
    }
}

/* A clock that is wrong, or is put back, is no reason to wait until it is right. */
static void test_wrong_times(void)
{
    CamPictureTimeline timeline = {0};
    GstClockTime last = START, now = START + INTERVAL;

    g_assert_cmpuint(cam_picture_timeline_place(&timeline, 0, now, last), ==, now);
    last = now;
    now += INTERVAL;
    g_assert_cmpuint(cam_picture_timeline_place(&timeline, now + 60 * GST_SECOND, now, last), ==,
                     now);
    last = now;
    now += INTERVAL;
    g_assert_cmpuint(cam_picture_timeline_place(&timeline, now - 5 * GST_SECOND, now, last), ==,
                     last + GST_MSECOND);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/picture-timeline/times", test_times);
    g_test_add_func("/picture-timeline/prompt-again", test_prompt_again);
    g_test_add_func("/picture-timeline/ahead", test_ahead);
    g_test_add_func("/picture-timeline/wrong-times", test_wrong_times);
    return g_test_run();
}
