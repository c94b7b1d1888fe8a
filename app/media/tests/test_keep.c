/* The sound that a camera keeps for pre-rolls. */
#include "audio_codec.h"
#include "camera.h"
#include "encoder_choice.h"
#include "wait.h"
#include "ending.h"

/* What is to be found among the sound that is kept. */
typedef struct {
    CamCamera *camera;
    CamAudioCodec codec;
    GstClockTime from;
    guint units;
} Search;

static void count(GstBuffer *unit, gpointer search)
{
    ((Search *)search)->units++;
}

static gboolean is_found(gpointer data)
{
    Search *search = data;

    search->units = 0;
    cam_camera_replay_sound(search->camera, search->codec, search->from, count, search);
    return search->units > 0;
}

/* Sound of now on. */
static Search fresh(CamCamera *camera, CamAudioCodec codec)
{
    return (Search){.camera = camera, .codec = codec, .from = cam_now()};
}

static gboolean is_closed(gpointer unused)
{
    return !cam_endings_pending();
}

static void set_audio(CamCamera *camera, CamAudioSourceType type, char *device)
{
    CamAudioSpec spec = {.type = type, .device = device};

    cam_camera_set_audio(camera, &spec);
}

/* What is kept follows the camera's sound: it goes, is another, is there for the first time; and
 * goes with the last stream that keeps its past. */
static void test_sound_changes(void)
{
    CamCameraSetup setup = {
        .spec = {.type = CAM_SOURCE_TEST},
        .mode = {160, 120, 10},
        .streams =
            {{.name = "s", .width = 160, .height = 120, .fps = 10, .bitrate_kbps = 100, .gop = 10}},
        .n_streams = 1};
    CamCamera *camera = cam_camera_new(&setup);
    CamHub *hub = cam_camera_hub(camera, "s");
    CamAudioCodec codec = CAM_AUDIO_AAC;
    Search search;

    cam_camera_keep(camera, hub, 1000000, &codec);
    set_audio(camera, CAM_AUDIO_TEST, NULL);
    search = fresh(camera, codec);
    g_assert_true(wait_for(is_found, &search));
    set_audio(camera, CAM_AUDIO_NONE, NULL);
    g_assert_false(is_found(&search));
    set_audio(camera, CAM_AUDIO_ALSA, (char *)"null");
    search = fresh(camera, codec);
    g_assert_true(wait_for(is_found, &search));
    set_audio(camera, CAM_AUDIO_TEST, NULL);
    g_assert_false(is_found(&search));
    search = fresh(camera, codec);
    g_assert_true(wait_for(is_found, &search));
    codec = CAM_AUDIO_MP3;
    cam_camera_keep(camera, hub, 1000000, &codec);
    g_assert_false(is_found(&search));
    search = fresh(camera, codec);
    g_assert_true(wait_for(is_found, &search));
    cam_camera_keep(camera, hub, 0, NULL);
    g_assert_false(is_found(&search));
    set_audio(camera, CAM_AUDIO_TEST, NULL);
    cam_camera_keep(camera, hub, 1000000, NULL);
    g_assert_false(is_found(&search));
    cam_camera_keep(camera, hub, 1000000, &codec);
    search = fresh(camera, codec);
    g_assert_true(wait_for(is_found, &search));
    cam_camera_configure(camera, NULL, setup.streams, 0);
    g_assert_false(is_found(&search));
    cam_hub_unref(hub);
    cam_camera_close(camera);
    g_assert_true(wait_for(is_closed, NULL));
    cam_camera_unref(camera);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_encoder_choice_probe();
    cam_audio_codecs_probe();
    g_test_add_func("/keep/sound_changes", test_sound_changes);
    return g_test_run();
}
