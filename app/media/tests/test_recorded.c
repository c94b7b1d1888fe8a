/* Reading, cutting and showing recorded files, whole ones and broken ones. Seeded: FUZZ_SEED and
 * FUZZ_SECONDS change the run. */
#include "export.h"
#include "log.h"
#include "thumbnail.h"
#include "timeline.h"

#include <glib/gstdio.h>
#include <gst/gst.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_SECONDS 10
#define FRAMES 60

static char *folder;

/* 60 pictures at 30 a second, a key frame each 20; a second and a half of sound. */
static const struct {
    const char *name, *tail;
    CamCodec video, audio;
} files[] = {
    {"plain.mp4",
     "mp4mux name=mux %s x264enc key-int-max=20 tune=zerolatency ! mux. %s avenc_aac ! mux.",
     CAM_CODEC_H264, CAM_CODEC_AAC},
    {"fragments.mp4",
     "mp4mux name=mux fragment-duration=200 %s x264enc key-int-max=20 tune=zerolatency ! mux. %s "
     "lamemp3enc ! mux.",
     CAM_CODEC_H264, CAM_CODEC_MP3},
    {"h265.mp4",
     "mp4mux name=mux fragment-duration=200 %s x265enc key-int-max=20 speed-preset=ultrafast "
     "tune=zerolatency ! h265parse ! mux. %s avenc_aac ! mux.",
     CAM_CODEC_H265, CAM_CODEC_AAC},
    {"jpeg.avi",
     "avimux name=mux %s jpegenc ! mux. %s audioconvert ! audio/x-raw,format=S16LE ! mux.",
     CAM_CODEC_MJPEG, CAM_CODEC_PCM},
    {"h264.avi",
     "avimux name=mux %s x264enc key-int-max=20 tune=zerolatency ! "
     "video/x-h264,stream-format=byte-stream ! h264parse config-interval=-1 ! mux. %s lamemp3enc ! "
     "mux.",
     CAM_CODEC_H264, CAM_CODEC_MP3},
};

static char *path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void make_file(guint i)
{
    g_autofree char *path = path_of(files[i].name);
    g_autofree char *video =
        g_strdup_printf("! filesink location=%s videotestsrc num-buffers=%d ! "
                        "video/x-raw,width=160,height=120,framerate=30/1 ! videoconvert !",
                        path, FRAMES);
    const char *audio = "audiotestsrc samplesperbuffer=1024 num-buffers=70 ! "
                        "audio/x-raw,rate=48000,channels=2 ! ";
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    GstMessage *message;
    GstElement *pipeline;
    GstBus *bus;

    G_GNUC_BEGIN_IGNORE_DEPRECATIONS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    text = g_strdup_printf(files[i].tail, video, audio);
#pragma GCC diagnostic pop
    G_GNUC_END_IGNORE_DEPRECATIONS
    pipeline = gst_parse_launch(text, &error);
    g_assert_no_error(error);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    bus = gst_pipeline_get_bus(GST_PIPELINE(pipeline));
    message = gst_bus_timed_pop_filtered(bus, 30 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    g_assert_cmpint(GST_MESSAGE_TYPE(message), ==, GST_MESSAGE_EOS);
    gst_message_unref(message);
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
}

static void test_whole(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = path_of(files[i].name);
        g_autofree char *message = NULL;
        CamMediaFile *file = cam_media_file_open(path, &message);
        const CamTrack *video;
        int keys = 0;

        g_assert_nonnull(file);
        video = &file->track[CAM_TRACK_VIDEO];
        g_assert_cmpint(video->codec, ==, files[i].video);
        g_assert_cmpint(file->track[CAM_TRACK_AUDIO].codec, ==, files[i].audio);
        g_assert_cmpint(file->track[CAM_TRACK_AUDIO].rate, ==, 48000);
        g_assert_cmpint(video->width, ==, 160);
        g_assert_cmpuint(video->units->len, ==, FRAMES);
        for (guint n = 0; n < FRAMES; n++) {
            GstBuffer *unit = cam_media_file_read(file, CAM_TRACK_VIDEO, n);

            g_assert_nonnull(unit);
            g_assert_cmpint(ABS((gint64)GST_BUFFER_PTS(unit) - (gint64)(n * GST_SECOND / 30)), <,
                            5 * GST_MSECOND);
            keys += !GST_BUFFER_FLAG_IS_SET(unit, GST_BUFFER_FLAG_DELTA_UNIT);
            gst_buffer_unref(unit);
        }
        g_assert_cmpint(keys, ==, files[i].video == CAM_CODEC_MJPEG ? FRAMES : FRAMES / 20);
        g_assert_cmpuint(cam_track_key_before(video, 1500 * GST_MSECOND), ==,
                         files[i].video == CAM_CODEC_MJPEG ? 45 : 40);
        g_assert_cmpuint(cam_track_key_before(video, 0), ==, 0);
        g_assert_cmpuint(cam_track_key_before(video, GST_CLOCK_TIME_NONE - 1), >=, 40);
        cam_media_file_free(file);
    }
}

/* Two parts are one: times go on, and a place in the second one is found. */
static void test_timeline(void)
{
    g_autofree char *path = path_of("plain.mp4");
    const char *paths[] = {path, path, NULL};
    const GstClockTime durations[] = {0, 0};
    g_autofree char *message = NULL;
    CamTimeline *timeline = cam_timeline_new(paths, durations, &message);
    CamCursor *cursor;
    GstBuffer *unit;
    guint n = 0;

    g_assert_nonnull(timeline);
    g_assert_cmpuint(cam_timeline_duration(timeline) / GST_MSECOND, ==, 4000);
    cursor = cam_cursor_new(timeline, CAM_TRACK_VIDEO);
    for (; (unit = cam_cursor_next(cursor, FALSE)); n++) {
        g_assert_cmpint(ABS((gint64)GST_BUFFER_PTS(unit) - (gint64)(n * GST_SECOND / 30)), <,
                        5 * GST_MSECOND);
        gst_buffer_unref(unit);
    }
    g_assert_cmpuint(n, ==, 2 * FRAMES);
    g_assert_cmpuint(cam_cursor_seek(cursor, 3 * GST_SECOND) / GST_MSECOND, ==, 2666);
    g_assert_cmpuint(cam_cursor_seek(cursor, 2 * GST_SECOND) / GST_MSECOND, ==, 2000);
    cam_cursor_free(cursor);
    cam_timeline_unref(timeline);
}

static void test_deleted(void)
{
    g_autofree char *from = path_of("plain.mp4");
    g_autofree char *path = path_of("deleted.mp4");
    const char *paths[] = {path, NULL};
    const GstClockTime duration = 0;
    g_autofree char *data = NULL;
    g_autofree char *message = NULL;
    CamTimeline *timeline;
    CamCursor *cursor;
    GstBuffer *unit;
    gsize size;
    int n = 0;

    g_assert_true(g_file_get_contents(from, &data, &size, NULL));
    g_assert_true(g_file_set_contents(path, data, (gssize)size, NULL));
    timeline = cam_timeline_new(paths, &duration, &message);
    cursor = cam_cursor_new(timeline, CAM_TRACK_VIDEO);
    unit = cam_cursor_next(cursor, FALSE);
    g_assert_nonnull(unit);
    gst_buffer_unref(unit);
    g_assert_cmpint(g_unlink(path), ==, 0);
    for (; (unit = cam_cursor_next(cursor, FALSE)); n++)
        gst_buffer_unref(unit);
    g_assert_cmpint(n, <, 20);
    cam_cursor_free(cursor);
    cam_timeline_unref(timeline);
}

static void test_thumbnail(void)
{
    const gint cancel = 0;

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = path_of(files[i].name);
        g_autofree char *message = NULL;
        CamThumbnail thumbnail;

        g_assert_true(cam_thumbnail_make(path, 1500, 80, 80, &cancel, &thumbnail, &message));
        g_assert_cmpint(thumbnail.width, ==, 80);
        g_assert_cmpint(thumbnail.height, ==, 60);
        g_assert_cmpint(thumbnail.position_ms, >=, 1333);
        g_assert_cmpuint(g_bytes_get_size(thumbnail.jpeg), >, 200);
        g_bytes_unref(thumbnail.jpeg);
    }
}

static void on_progress(gdouble fraction, gpointer user_data)
{
    g_assert_cmpfloat(fraction, >=, 0);
    g_assert_cmpfloat(fraction, <=, 1);
}

static CamExportResult export(const CamExportPart *parts, guint n, const char *path,
                              const gint *cancel)
{
    return cam_export_run(&(CamExportSetup){
        .parts = parts, .n_parts = n, .path = path, .progress = on_progress, .cancel = cancel});
}

static void assert_nothing_left(const char *path)
{
    g_autofree char *temporary = g_strconcat(path, ".part", NULL);

    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(temporary, G_FILE_TEST_EXISTS));
}

static void test_export(void)
{
    g_autofree char *out = path_of("out.mp4");
    const gint run_through = 0, cancel = 1;

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = path_of(files[i].name);
        const CamExportPart parts[] = {{path, 1000, -1}, {path, 0, 1000}};
        CamExportResult result = export(parts, 2, out, &run_through);
        g_autofree char *message = NULL;
        CamMediaFile *file;

        if (files[i].video == CAM_CODEC_MJPEG) {
            g_assert_cmpint(result.outcome, ==, CAM_EXPORT_UNSUPPORTED);
            assert_nothing_left(out);
            g_free(result.message);
            continue;
        }
        g_assert_cmpstr(result.message, ==, NULL);
        g_assert_cmpint(result.outcome, ==, CAM_EXPORT_DONE);
        /* From the key frame at 0.667 s on, then a second. */
        g_assert_cmpint(ABS(result.duration_ms - 2333), <=, 5);
        file = cam_media_file_open(out, &message);
        g_assert_nonnull(file);
        g_assert_cmpuint(file->track[CAM_TRACK_VIDEO].units->len, ==, 70);
        g_assert_cmpint(file->track[CAM_TRACK_VIDEO].codec, ==, files[i].video);
        g_assert_cmpint(file->track[CAM_TRACK_AUDIO].codec, ==,
                        files[i].audio == CAM_CODEC_PCM ? CAM_CODEC_AAC : files[i].audio);
        cam_media_file_free(file);
        result = export(parts, 2, out, &run_through);
        g_assert_cmpint(result.outcome, ==, CAM_EXPORT_IO);
        g_assert_cmpint(result.error_number, ==, EEXIST);
        g_free(result.message);
        g_unlink(out);
        result = export(parts, 2, out, &cancel);
        g_assert_cmpint(result.outcome, ==, CAM_EXPORT_CANCELLED);
        g_free(result.message);
        assert_nothing_left(out);
    }
}

static void test_export_mismatch(void)
{
    g_autofree char *out = path_of("out.mp4");
    g_autofree char *one = path_of("plain.mp4");
    g_autofree char *two = path_of("h265.mp4");
    const CamExportPart parts[] = {{one, 0, -1}, {two, 0, -1}};
    const gint cancel = 0;
    CamExportResult result = export(parts, 2, out, &cancel);

    g_assert_cmpint(result.outcome, ==, CAM_EXPORT_UNSUPPORTED);
    g_free(result.message);
    assert_nothing_left(out);
}

/* Everything that is done with a file. */
static void use_file(const char *path, gboolean decode)
{
    const char *paths[] = {path, NULL};
    const GstClockTime duration = 0;
    g_autofree char *message = NULL;
    CamTimeline *timeline = cam_timeline_new(paths, &duration, &message);
    const gint cancel = 0;

    for (int kind = 0; timeline && kind < CAM_N_TRACKS; kind++) {
        CamCursor *cursor = cam_cursor_new(timeline, (CamTrackKind)kind);
        GstBuffer *unit;

        for (int n = 0; n < 200 && (unit = cam_cursor_next(cursor, n % 50 == 49)); n++)
            gst_buffer_unref(unit);
        cam_cursor_seek(cursor, GST_SECOND);
        cam_cursor_seek(cursor, cam_timeline_duration(timeline));
        cam_cursor_free(cursor);
    }
    if (timeline)
        cam_timeline_unref(timeline);
    if (timeline && decode) {
        g_autofree char *out = path_of("fuzz-out.mp4");
        const CamExportPart part = {(char *)path, 500, 1500};
        g_autofree char *problem = NULL;
        CamThumbnail thumbnail;
        CamExportResult result;

        if (cam_thumbnail_make(path, 1000, 64, 50, &cancel, &thumbnail, &problem))
            g_bytes_unref(thumbnail.jpeg);
        result = export(&part, 1, out, &cancel);
        g_free(result.message);
        if (result.outcome == CAM_EXPORT_DONE)
            g_unlink(out);
        assert_nothing_left(out);
    }
}

/* Half of them where the structure is: the boxes' names and lengths. */
static gsize place(GRand *rand, const guint8 *data, gsize size)
{
    static const char *const names[] = {"moov", "trak", "stsd", "stsz", "stsc", "stco",
                                        "stts", "avcC", "esds", "trun", "tfhd", "elst",
                                        "strh", "strf", "idx1", "movi", "01wb", "hvcC"};
    const char *name = names[g_rand_int_range(rand, 0, G_N_ELEMENTS(names))];
    const guint8 *found = g_rand_boolean(rand) ? memmem(data, size, name, 4) : NULL;
    gsize at = found ? (gsize)(found - data) : (gsize)g_rand_int_range(rand, 0, (gint)size);

    if (found)
        at = at - MIN(at, 4) + (gsize)g_rand_int_range(rand, 0, 40);
    return MIN(at, size - 1);
}

static void test_fuzz(void)
{
    const char *seed = g_getenv("FUZZ_SEED"), *seconds = g_getenv("FUZZ_SECONDS");
    guint32 seed_value = seed ? (guint32)g_ascii_strtoull(seed, NULL, 10) : 20240601;
    GRand *rand = g_rand_new_with_seed(seed_value);
    gint64 until =
        g_get_monotonic_time() +
        (seconds ? g_ascii_strtoll(seconds, NULL, 10) : DEFAULT_SECONDS) * G_USEC_PER_SEC;
    g_autofree char *path = path_of("fuzzed");
    guint n = 0;

    for (; g_get_monotonic_time() < until; n++) {
        g_autofree char *from = path_of(files[n % G_N_ELEMENTS(files)].name);
        g_autofree guint8 *data = NULL;
        gsize size;

        g_assert_true(g_file_get_contents(from, (char **)&data, &size, NULL));
        for (int i = g_rand_int_range(rand, 0, 8); i > 0; i--)
            data[place(rand, data, size)] =
                g_rand_boolean(rand) ? 0xff : (guint8)g_rand_int_range(rand, 0, 256);
        if (g_rand_int_range(rand, 0, 3) == 0)
            size = (gsize)g_rand_int_range(rand, 1, (gint)size);
        g_assert_true(g_file_set_contents(path, (char *)data, (gssize)size, NULL));
        use_file(path, n % 20 == 0);
    }
    g_test_message("seed %u: %u files", seed_value, n);
    g_rand_free(rand);
}

static void remove_folder(void)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = path_of(name);

        g_unlink(path);
    }
    g_dir_close(dir);
    g_rmdir(folder);
    g_free(folder);
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_log_set_level("error");
    folder = g_dir_make_tmp("recorded-XXXXXX", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(files); i++)
        make_file(i);
    g_test_add_func("/recorded/whole", test_whole);
    g_test_add_func("/recorded/timeline", test_timeline);
    g_test_add_func("/recorded/deleted", test_deleted);
    g_test_add_func("/recorded/thumbnail", test_thumbnail);
    g_test_add_func("/recorded/export", test_export);
    g_test_add_func("/recorded/export_mismatch", test_export_mismatch);
    g_test_add_func("/recorded/fuzz", test_fuzz);
    status = g_test_run();
    remove_folder();
    return status;
}
