/* A hub whose encoder breaks: the hardware's place is taken by an element with faults. */
#include "encoder_choice.h"
#include "ending.h"
#include "fake_codec.h"
#include "key_frame.h"
#include "silence.h"
#include "stream.h"
#include "wait.h"

#include <gst/video/video.h>

#define FPS 10

static GstBuffer *key_frame;

typedef struct {
    CamHub *hub;
    GstCaps *caps;
    GstBuffer *picture;
    GstClockTime pushed; /* the newest picture */
    gint units;          /* atomic */
    gint before;         /* of them may come from the hardware */
} Viewer;

static gboolean deliver(GstBuffer *au, gpointer user_data)
{
    Viewer *viewer = user_data;

    g_atomic_int_inc(&viewer->units);
    gst_buffer_unref(au);
    return TRUE;
}

static void feed(Viewer *viewer)
{
    GstClockTime now = cam_now();

    if (now < viewer->pushed + GST_SECOND / FPS)
        return;
    viewer->pushed = now;
    cam_hub_push_raw(viewer->hub, viewer->picture, viewer->caps, now);
}

static char *encoder_of(CamHub *hub)
{
    JsonObject *stats = cam_hub_stats(hub);
    char *name = g_strdup(json_object_get_string_member_with_default(stats, "encoder", ""));

    json_object_unref(stats);
    return name;
}

static gboolean software_gives(gpointer data)
{
    Viewer *viewer = data;
    g_autofree char *name = encoder_of(viewer->hub);

    feed(viewer);
    return g_str_equal(name, "x264enc") && g_atomic_int_get(&viewer->units) > viewer->before;
}

static gboolean second_gives(gpointer data)
{
    Viewer *viewer = data;

    feed(viewer);
    return g_atomic_int_get(&fake_codec.made) == 2 && g_atomic_int_get(&viewer->units) > FPS;
}

static gboolean is_over(gpointer unused)
{
    return !cam_endings_pending();
}

static Viewer *viewer_new(void)
{
    CamStreamConfig config = {.name = "stream1",
                              .codec = CAM_VIDEO_H264,
                              .width = KEY_WIDTH,
                              .height = KEY_HEIGHT,
                              .fps = FPS,
                              .bitrate_kbps = 500,
                              .gop = FPS};
    Viewer *viewer = g_new0(Viewer, 1);
    GstVideoInfo info;

    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_I420, KEY_WIDTH, KEY_HEIGHT);
    viewer->caps = gst_video_info_to_caps(&info);
    viewer->picture = gst_buffer_new_allocate(NULL, info.size, NULL);
    gst_buffer_memset(viewer->picture, 0, 128, info.size);
    viewer->hub = cam_hub_new(&config, NULL, NULL);
    fake_codec.made = 0;
    cam_hub_attach(viewer->hub, &(CamHubConsumer){.deliver = deliver, .user_data = viewer});
    return viewer;
}

static void viewer_free(Viewer *viewer)
{
    cam_hub_close(viewer->hub);
    g_assert_true(wait_for(is_over, NULL));
    cam_hub_unref(viewer->hub);
    gst_caps_unref(viewer->caps);
    gst_buffer_unref(viewer->picture);
    g_free(viewer);
}

static FakeFault always;

static FakeFault always_fault(gint number)
{
    return always;
}

/* One that never works is not tried again. */
static void test_software(gconstpointer fault)
{
    Viewer *viewer = viewer_new();

    always = (FakeFault)GPOINTER_TO_INT(fault);
    fake_codec.fault = always_fault;
    g_mutex_lock(&fake_codec.hanging);
    g_assert_true(wait_long(software_gives, viewer));
    g_assert_cmpint(g_atomic_int_get(&fake_codec.made), ==, 1);
    g_mutex_unlock(&fake_codec.hanging);
    viewer_free(viewer);
}

/* The first one works for a while; set on the encoders' threads. */
static struct {
    guint pictures;
    FakeFault fault;           /* after FPS of them */
    GstClockTime broke, again; /* then; the second one's first picture */
} first;

static FakeFault fault_after_a_while(gint number)
{
    if (number > 1) {
        if (first.again == 0)
            first.again = cam_now();
        return FAKE_WORKS;
    }
    if (++first.pictures <= FPS)
        return FAKE_WORKS;
    first.broke = cam_now();
    return first.fault;
}

static Viewer *viewer_of_first(FakeFault fault)
{
    memset(&first, 0, sizeof(first));
    first.fault = fault;
    fake_codec.fault = fault_after_a_while;
    return viewer_new();
}

/* One that worked is, for what another makes does not fit the same files; but not at once. */
static void test_again(void)
{
    Viewer *viewer = viewer_of_first(FAKE_FAILS);
    g_autofree char *name = NULL;

    g_assert_true(wait_long(second_gives, viewer));
    name = encoder_of(viewer->hub);
    g_assert_cmpstr(name, ==, "v4l2h264enc");
    g_assert_cmpuint(first.again, >=, first.broke + GST_SECOND);
    viewer_free(viewer);
}

/* Unlike one that fell silent: the driver that hangs would hang in open() next. */
static void test_silent(void)
{
    Viewer *viewer = viewer_of_first(FAKE_SILENT);

    viewer->before = FPS;
    g_assert_true(wait_long(software_gives, viewer));
    g_assert_cmpint(g_atomic_int_get(&fake_codec.made), ==, 1);
    viewer_free(viewer);
}

static gint second_hangs; /* atomic */

/* The first one breaks, the second one hangs. */
static FakeFault fault_of_two(gint number)
{
    static guint pictures[2];

    if (number > 2 || ++pictures[number - 1] <= FPS)
        return FAKE_WORKS;
    if (number == 1)
        return FAKE_FAILS;
    g_atomic_int_set(&second_hangs, TRUE);
    return FAKE_HANGS;
}

static gboolean hangs(gpointer viewer)
{
    feed(viewer);
    return g_atomic_int_get(&second_hangs);
}

static gboolean third_gives(gpointer data)
{
    Viewer *viewer = data;

    feed(viewer);
    return g_atomic_int_get(&fake_codec.made) == 3 && g_atomic_int_get(&viewer->units) > 2 * FPS;
}

/* That it takes long to end is not held against one that was only to be set anew. */
static void test_slow_end(void)
{
    Viewer *viewer = viewer_new();
    CamStreamConfig config = cam_hub_config(viewer->hub);
    g_autofree char *name = NULL;

    fake_codec.fault = fault_of_two;
    g_mutex_lock(&fake_codec.hanging);
    g_assert_true(wait_for(hangs, viewer));
    config.bitrate_kbps *= 2;
    cam_hub_set_config(viewer->hub, &config);
    g_assert_true(wait_for(third_gives, viewer));
    name = encoder_of(viewer->hub);
    g_assert_cmpstr(name, ==, "v4l2h264enc");
    g_mutex_unlock(&fake_codec.hanging);
    viewer_free(viewer);
}

/* How many pictures, one each GAP, go in until an encoder is said to be silent. */
static guint pictures_until_silent(GstClockTime gap)
{
    CamSilence silence = {0};
    GstClockTime now = GST_SECOND;
    guint n = 1;

    for (; !cam_silence_fed(&silence, 10 * GST_SECOND, now); now += gap)
        n++;
    return n;
}

/* An encoder may keep some pictures before it gives the first. */
static void test_silence(void)
{
    g_assert_cmpuint(pictures_until_silent(GST_SECOND / 10), ==, 102);
    g_assert_cmpuint(pictures_until_silent(8 * GST_SECOND), ==, 11);
}

static GstBuffer *encode(GstBuffer *buffer)
{
    GstBuffer *au = gst_buffer_copy(key_frame);

    GST_BUFFER_PTS(au) = GST_BUFFER_PTS(buffer);
    GST_BUFFER_DTS(au) = GST_BUFFER_PTS(buffer);
    return au;
}

int main(int argc, char **argv)
{
    int result;

    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    key_frame = key_frame_new();
    fake_codec.give = encode;
    fake_codec.caps = "video/x-h264,stream-format=byte-stream,alignment=au,width=160,height=120,"
                      "framerate=10/1";
    fake_codec_register("v4l2h264enc");
    cam_encoder_choice_probe();
    g_test_add_func("/encoder/again", test_again);
    g_test_add_func("/encoder/silent", test_silent);
    g_test_add_func("/encoder/slow-end", test_slow_end);
    g_test_add_func("/encoder/silence", test_silence);
    g_test_add_data_func("/encoder/fails", GINT_TO_POINTER(FAKE_FAILS), test_software);
    g_test_add_data_func("/encoder/hangs", GINT_TO_POINTER(FAKE_HANGS), test_software);
    result = g_test_run();
    gst_buffer_unref(key_frame);
    return result;
}
