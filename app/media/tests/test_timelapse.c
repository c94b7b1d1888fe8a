/* A timelapse whose encoder hangs: the hardware's place is taken by an element with faults. */
#include "encoder_choice.h"
#include "ending.h"
#include "events.h"
#include "fake_codec.h"
#include "recorder.h"
#include "wait.h"

#include <glib/gstdio.h>

static JsonObject *ended; /* the event */

static void on_event(const char *method, JsonObject *params, gpointer user_data)
{
    if (g_str_equal(method, "recorder.ended"))
        ended = json_object_ref(params);
}

static void on_ended(CamRecorder *recorder, gpointer user_data)
{
}

static gboolean has_ended(gpointer unused)
{
    return ended != NULL;
}

static gboolean hangs(gpointer unused)
{
    return g_atomic_int_get(&fake_codec.made) > 0;
}

static gboolean is_closed(gpointer unused)
{
    return !cam_endings_pending();
}

static FakeFault hang(gint number)
{
    return FAKE_HANGS;
}

static CamRecorder *start(CamCamera *camera, const char *path)
{
    CamRecorderSetup setup = {
        .camera = camera,
        .path = path,
        .spec = {.mode = CAM_RECORD_TIMELAPSE, .interval_ms = 100, .playback_fps = 10},
        .config = {.width = 160, .height = 120, .fps = 10, .bitrate_kbps = 200, .gop = 10},
        .ended = on_ended};
    int error_number;
    CamRecorder *recorder = cam_recorder_start(&setup, &error_number);

    g_assert_nonnull(recorder);
    return recorder;
}

/* The recording ends without it. */
static void test_hanging(void)
{
    g_autofree char *folder = g_dir_make_tmp("timelapse-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "0.mp4", NULL);
    CamCameraSetup setup = {.spec = {.type = CAM_SOURCE_TEST}, .mode = {160, 120, 10}};
    CamCamera *camera = cam_camera_new(&setup);
    CamRecorder *recorder;

    cam_events_set_sink(on_event, NULL);
    g_mutex_lock(&fake_codec.hanging);
    recorder = start(camera, path);
    g_assert_true(wait_for(hangs, NULL));
    cam_recorder_end(recorder, CAM_END_STOPPED);
    g_assert_true(wait_for(has_ended, NULL));
    g_assert_cmpstr(json_object_get_string_member(ended, "reason"), ==, "stopped");
    g_assert_true(cam_endings_pending());
    g_mutex_unlock(&fake_codec.hanging);
    cam_camera_close(camera);
    g_assert_true(wait_for(is_closed, NULL));
    cam_camera_unref(camera);
    cam_events_set_sink(NULL, NULL);
    json_object_unref(ended);
    g_remove(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    fake_codec.fault = hang;
    fake_codec.caps = "video/x-h264,stream-format=byte-stream,alignment=au,width=160,height=120,"
                      "framerate=10/1";
    fake_codec_register("v4l2h264enc");
    cam_encoder_choice_probe();
    g_test_add_func("/timelapse/hanging", test_hanging);
    return g_test_run();
}
