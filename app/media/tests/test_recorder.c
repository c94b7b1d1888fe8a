/* Recordings whose pictures stop coming. */
#include "audio_codec.h"
#include "encoder_choice.h"
#include "events.h"
#include "recorder.h"
#include "wait.h"
#include "ending.h"
#include "key_frame.h"

#include <glib/gstdio.h>

#define FPS 10
#define LIMIT_MS 1000
/* Longer than pictures are waited for. */
#define OVERDUE_S 20

static char *folder;

/* A recording of a stream whose pictures the test gives. */
typedef struct {
    CamHub *hub;
    CamRecorder *recorder;
    char *path;
    GstClockTime next; /* picture's time */
    gboolean over;
    JsonObject *ended; /* the event */
} Taking;

static Taking takings[4];
static GstBuffer *key_frame;

static void on_event(const char *method, JsonObject *params, gpointer user_data)
{
    if (g_str_equal(method, "recorder.ended"))
        takings[json_object_get_int_member(params, "id")].ended = json_object_ref(params);
}

static void on_ended(CamRecorder *recorder, gpointer user_data)
{
    ((Taking *)user_data)->over = TRUE;
}

static Taking *start(int id, CamCamera *camera, gboolean native)
{
    CamStreamConfig config = {
        .name = "s", .width = 160, .height = 120, .fps = FPS, .bitrate_kbps = 200, .gop = 10 * FPS};
    g_autofree char *name = g_strdup_printf("%d.mp4", id);
    Taking *taking = &takings[id];
    CamRecorderSetup setup = {.id = id,
                              .camera = camera,
                              .spec = {.duration_ms = LIMIT_MS},
                              .ended = on_ended,
                              .user_data = taking};
    int error_number;

    *taking = (Taking){.hub = cam_hub_new(&config, NULL, NULL),
                       .path = g_build_filename(folder, name, NULL),
                       .next = cam_now()};
    cam_hub_set_passthrough(taking->hub, native);
    setup.path = taking->path;
    setup.hub = cam_hub_ref(taking->hub);
    taking->recorder = cam_recorder_start(&setup, &error_number);
    g_assert_nonnull(taking->recorder);
    return taking;
}

static void give(Taking *taking, int pictures)
{
    GstCaps *caps = gst_caps_from_string("video/x-raw,format=I420,width=160,height=120,"
                                         "framerate=10/1");

    for (int i = 0; i < pictures; i++, taking->next += GST_SECOND / FPS) {
        GstBuffer *picture = gst_buffer_new_allocate(NULL, 160 * 120 * 3 / 2, NULL);

        gst_buffer_memset(picture, 0, (guint8)(16 + i), gst_buffer_get_size(picture));
        cam_hub_push_raw(taking->hub, picture, caps, taking->next);
        gst_buffer_unref(picture);
    }
    gst_caps_unref(caps);
}

/* One from a camera that encodes itself. */
static void give_native(Taking *taking, gboolean key)
{
    GstBuffer *au = gst_buffer_copy(key_frame);

    GST_BUFFER_PTS(au) = GST_BUFFER_DTS(au) = taking->next;
    GST_BUFFER_DURATION(au) = GST_SECOND / FPS;
    if (!key)
        GST_BUFFER_FLAG_SET(au, GST_BUFFER_FLAG_DELTA_UNIT);
    cam_hub_push_encoded(taking->hub, au);
    gst_buffer_unref(au);
    taking->next += GST_SECOND / FPS;
}

static gint64 frames(Taking *taking)
{
    JsonObject *stats = cam_recorder_stats(taking->recorder);
    gint64 n = json_object_get_int_member(stats, "frames");

    json_object_unref(stats);
    return n;
}

static gboolean has_five(gpointer taking)
{
    return frames(taking) == 5;
}

static gboolean has_ended(gpointer taking)
{
    return ((Taking *)taking)->over && ((Taking *)taking)->ended;
}

/* Meanwhile the camera that encodes itself goes on, without a key frame. */
static gboolean has_ended_before_key(gpointer taking)
{
    Taking *native = &takings[3];

    if (cam_now() >= native->next)
        give_native(native, FALSE);
    return has_ended(taking);
}

static gboolean is_closed(gpointer unused)
{
    return !cam_endings_pending();
}

static void check_end(Taking *taking, const char *reason, gint64 pictures)
{
    g_assert_true(wait_for(has_ended, taking));
    g_assert_cmpstr(json_object_get_string_member(taking->ended, "reason"), ==, reason);
    g_assert_cmpint(json_object_get_int_member(taking->ended, "frames"), ==, pictures);
}

static void clear(Taking *taking)
{
    cam_hub_close(taking->hub);
    cam_hub_unref(taking->hub);
    json_object_unref(taking->ended);
    g_remove(taking->path);
    g_free(taking->path);
}

/* Of one the pictures stop: it ends. A pause may last, and so may the wait for the first picture,
 * or for the key frame to go on with. */
static void test_limit_without_pictures(void)
{
    CamCameraSetup setup = {.spec = {.type = CAM_SOURCE_TEST}, .mode = {160, 120, FPS}};
    CamCamera *camera = cam_camera_new(&setup);
    Taking *stopping = start(0, camera, FALSE), *empty = start(1, camera, FALSE);
    Taking *paused = start(2, camera, FALSE), *native = start(3, camera, TRUE);

    cam_events_set_sink(on_event, NULL);
    for (int i = 0; i < 5; i++)
        give_native(native, i == 0);
    g_assert_true(wait_for(has_five, native));
    cam_recorder_pause(native->recorder);
    cam_recorder_resume(native->recorder);
    give(stopping, 5);
    give(paused, 5);
    g_assert_true(wait_for(has_five, stopping));
    g_assert_true(wait_for(has_five, paused));
    cam_recorder_pause(paused->recorder);
    g_assert_true(wait_at_most(OVERDUE_S, has_ended_before_key, stopping));
    check_end(stopping, "duration", 5);
    g_assert_false(paused->over);
    for (int i = 0; i < 6; i++)
        give_native(native, i == 0);
    check_end(native, "duration", 10);
    g_assert_false(empty->over);
    cam_recorder_end(empty->recorder, CAM_END_STOPPED);
    check_end(empty, "stopped", 0);
    cam_recorder_end(paused->recorder, CAM_END_STOPPED);
    check_end(paused, "stopped", 5);
    for (guint i = 0; i < G_N_ELEMENTS(takings); i++)
        clear(&takings[i]);
    cam_events_set_sink(NULL, NULL);
    cam_camera_close(camera);
    g_assert_true(wait_for(is_closed, NULL));
    cam_camera_unref(camera);
}

int main(int argc, char **argv)
{
    int result;

    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_encoder_choice_probe();
    key_frame = key_frame_new();
    folder = g_dir_make_tmp("recorder-XXXXXX", NULL);
    g_test_add_func("/recorder/limit_without_pictures", test_limit_without_pictures);
    result = g_test_run();
    gst_buffer_unref(key_frame);
    g_rmdir(folder);
    g_free(folder);
    return result;
}
