#include "avi_header.h"
#include "encoder_elements.h"
#include "recording_spec.h"
#include "ring.h"

#include <string.h>

static JsonNode *parse(const char *text)
{
    GError *error = NULL;
    JsonNode *node = json_from_string(text, &error);

    g_assert_no_error(error);
    return node;
}

/* Reads a recorder.start with FIELDS; EXPECTED is the field at fault, "" for none. */
static CamRecordingSpec read_spec(const char *fields, const char *expected)
{
    g_autofree char *text = g_strconcat(
        "{\"id\": 1, \"camera\": 0, \"path\": \"/a.x\", \"stream\": \"s\"", fields, "}", NULL);
    JsonNode *node = parse(text);
    CamParamFault fault = {0};
    CamRecordingRequest request = cam_params_recording(json_node_get_object(node), &fault);

    g_assert_cmpstr(fault.field ? fault.field : "", ==, expected);
    cam_param_fault_clear(&fault);
    json_node_unref(node);
    return request.spec;
}

static void test_combinations(void)
{
    static const char *const containers[] = {"mp4", "avi"};
    static const char *const videos[] = {"h264", "h265", "mjpeg"};
    static const char *const audios[] = {"null", "\"aac\"", "\"mp3\"", "\"pcm\""};
    /* The field at fault by container, video and audio; video comes first. */
    static const char *const faults[2][3][4] = {
        {{"", "", "", "audio"}, {"", "", "", "audio"}, {"video", "video", "video", "video"}},
        {{"", "audio", "", ""}, {"video", "video", "video", "video"}, {"", "audio", "", ""}},
    };

    for (guint c = 0; c < 2; c++) {
        for (guint v = 0; v < 3; v++) {
            for (guint a = 0; a < 4; a++) {
                g_autofree char *fields =
                    g_strdup_printf(",\"container\": \"%s\", \"video\": \"%s\", \"audio\": %s",
                                    containers[c], videos[v], audios[a]);
                CamRecordingSpec spec = read_spec(fields, faults[c][v][a]);

                g_assert_cmpint(spec.container, ==, (int)c);
                g_assert_cmpint(spec.video, ==, (int)v);
                g_assert_cmpint(spec.has_audio, ==, a > 0);
            }
        }
    }
}

static void test_defaults(void)
{
    CamRecordingSpec spec = read_spec("", "");

    g_assert_cmpint(spec.container, ==, CAM_CONTAINER_MP4);
    g_assert_cmpint(spec.video, ==, CAM_VIDEO_H264);
    g_assert_cmpint(spec.mode, ==, CAM_RECORD_VIDEO);
    g_assert_false(spec.has_audio);
    g_assert_cmpint(spec.part_max_bytes, ==, 0);
    g_assert_cmpint(spec.pre_roll_ms, ==, 0);
    spec = read_spec(",\"container\": \"avi\"", "");
    g_assert_cmpint(spec.part_max_bytes, ==, 1900000000);
    spec = read_spec(",\"container\": \"avi\", \"part_max_bytes\": 2000000", "");
    g_assert_cmpint(spec.part_max_bytes, ==, 2000000);
    spec = read_spec(",\"container\": \"avi\", \"part_max_bytes\": 9000000000", "");
    g_assert_cmpint(spec.part_max_bytes, ==, 1900000000);
    read_spec(",\"timelapse\": null, \"slow_motion\": null", "");
}

static void test_modes(void)
{
#define TIMELAPSE ",\"timelapse\": {\"interval_ms\": 100, \"playback_fps\": 30}"
#define SLOW ",\"slow_motion\": {\"playback_fps\": 30}"
    CamRecordingSpec spec = read_spec(TIMELAPSE, "");

    g_assert_cmpint(spec.mode, ==, CAM_RECORD_TIMELAPSE);
    g_assert_cmpint(spec.interval_ms, ==, 100);
    spec = read_spec(SLOW, "");
    g_assert_cmpint(spec.mode, ==, CAM_RECORD_SLOW_MOTION);
    g_assert_cmpint(spec.playback_fps, ==, 30);
    read_spec(TIMELAPSE SLOW, "slow_motion");
    read_spec(TIMELAPSE ",\"audio\": \"aac\"", "audio");
    read_spec(SLOW ",\"audio\": \"mp3\"", "audio");
    read_spec(TIMELAPSE ",\"container\": \"avi\", \"video\": \"mjpeg\"", "");
    read_spec(",\"timelapse\": {\"interval_ms\": 99, \"playback_fps\": 30}",
              "timelapse.interval_ms");
    read_spec(",\"timelapse\": {\"interval_ms\": 86400001, \"playback_fps\": 30}",
              "timelapse.interval_ms");
    read_spec(",\"timelapse\": {\"interval_ms\": 100}", "timelapse.playback_fps");
    read_spec(",\"timelapse\": {\"interval_ms\": 100, \"playback_fps\": 30, \"x\": 1}",
              "timelapse.x");
    read_spec(",\"timelapse\": 5", "timelapse");
    read_spec(",\"slow_motion\": {\"playback_fps\": 241}", "slow_motion.playback_fps");
}

static void test_limits(void)
{
    read_spec(",\"part_max_ms\": 0", "");
    read_spec(",\"part_max_ms\": 999", "part_max_ms");
    read_spec(",\"part_max_ms\": 1000", "");
    read_spec(",\"part_max_bytes\": 1048575", "part_max_bytes");
    read_spec(",\"part_max_bytes\": -1", "part_max_bytes");
    read_spec(",\"part_max_bytes\": 1048576", "");
    read_spec(",\"pre_roll_ms\": 600001", "pre_roll_ms");
    read_spec(",\"pre_roll_ms\": 600000", "");
    read_spec(",\"queue_frames\": 301", "queue_frames");
    g_assert_cmpint(read_spec(",\"queue_frames\": 300", "").queue_frames, ==, 300);
    read_spec(",\"duration_ms\": -1", "duration_ms");
    read_spec(",\"container\": \"mkv\"", "container");
    read_spec(",\"container\": null", "container");
    read_spec(",\"video\": \"vp8\"", "video");
    read_spec(",\"audio\": \"opus\"", "audio");
    read_spec(",\"audio\": 1", "audio");
    read_spec(",\"encode\": {\"width\": 1}", "encode.width");
    read_spec(",\"paused\": true", "paused");
}

static void push(CamRing *ring, guint64 pts, gsize size, gboolean key)
{
    GstBuffer *unit = gst_buffer_new_allocate(NULL, size, NULL);

    GST_BUFFER_PTS(unit) = pts;
    if (!key)
        GST_BUFFER_FLAG_SET(unit, GST_BUFFER_FLAG_DELTA_UNIT);
    cam_ring_push(ring, unit);
    gst_buffer_unref(unit);
}

static void note(GstBuffer *unit, gpointer text)
{
    g_string_append_printf(text, "%" G_GUINT64_FORMAT " ", GST_BUFFER_PTS(unit));
}

static void check_ring(CamRing *ring, guint64 from, const char *expected)
{
    GString *text = g_string_new(NULL);

    g_assert_cmpint(cam_ring_replay(ring, from, note, text), ==, *expected != '\0');
    g_assert_cmpstr(text->str, ==, expected);
    g_string_free(text, TRUE);
}

static void test_ring(void)
{
    CamRing *ring = cam_ring_new(100);

    push(ring, 1, 10, FALSE);
    check_ring(ring, 0, "");
    push(ring, 2, 20, TRUE);
    push(ring, 3, 20, FALSE);
    push(ring, 4, 20, TRUE);
    push(ring, 5, 20, FALSE);
    check_ring(ring, 0, "2 3 4 5 ");
    check_ring(ring, 3, "4 5 ");
    check_ring(ring, 5, "");
    g_assert_cmpuint(cam_ring_bytes(ring), ==, 80);
    /* The oldest group goes as a whole. */
    push(ring, 6, 30, FALSE);
    check_ring(ring, 0, "4 5 6 ");
    g_assert_cmpuint(cam_ring_bytes(ring), ==, 70);
    /* A group that is too large by itself is no use, up to the next. */
    push(ring, 7, 31, FALSE);
    check_ring(ring, 0, "");
    push(ring, 8, 10, FALSE);
    check_ring(ring, 0, "");
    push(ring, 9, 10, TRUE);
    check_ring(ring, 0, "9 ");
    push(ring, 10, 200, TRUE);
    check_ring(ring, 0, "");
    push(ring, 11, 60, TRUE);
    push(ring, 12, 30, TRUE);
    cam_ring_set_max(ring, 40);
    check_ring(ring, 0, "12 ");
    cam_ring_clear(ring);
    check_ring(ring, 0, "");
    g_assert_cmpuint(cam_ring_bytes(ring), ==, 0);
    push(ring, 13, 10, TRUE);
    cam_ring_free(ring);
}

static guint32 get32(const GByteArray *bytes, guint offset)
{
    guint32 value;

    g_assert_cmpuint(offset + 4, <=, bytes->len);
    memcpy(&value, bytes->data + offset, 4);
    return GUINT32_FROM_LE(value);
}

static void test_avi_header(void)
{
    GstCaps *caps = gst_caps_from_string("audio/mpeg,rate=48000,channels=2");
    CamContainerFormat format = {.type = CAM_CONTAINER_AVI,
                                 .video = {.width = 640, .height = 360, .fps = 30},
                                 .has_audio = TRUE,
                                 .audio = CAM_AUDIO_MP3,
                                 .audio_caps = caps};
    g_autoptr(GByteArray) empty = cam_avi_header(&format, &(CamAviTotals){0});
    g_autoptr(GByteArray) full = cam_avi_header(&format, &(CamAviTotals){.movi_end = 5000,
                                                                         .file_end = 5100,
                                                                         .frames = 7,
                                                                         .audio_units = 10,
                                                                         .audio_bytes = 3840});
    guint movi = cam_avi_movi_offset(full);

    /* It is written over in place. */
    g_assert_cmpuint(empty->len, ==, full->len);
    g_assert_cmpmem(full->data, 4, "RIFF", 4);
    g_assert_cmpmem(full->data + movi, 4, "movi", 4);
    g_assert_cmpuint(get32(empty, 4), ==, empty->len - 8);
    g_assert_cmpuint(get32(full, 4), ==, 5100 - 8);
    g_assert_cmpuint(get32(full, movi - 4), ==, 5000 - movi);
    g_assert_cmpuint(get32(full, 48), ==, 7);
    g_assert_cmpuint(get32(empty, movi - 4), ==, 4);
    gst_caps_unref(caps);
}

static void test_queue(void)
{
    CamContainerFormat format = {.video = {.bitrate_kbps = 8000, .fps = 30}}; /* 1 MB a second */

    g_assert_cmpuint(cam_container_queue_bytes(&format), ==, 4u << 20);
    format.queue_frames = 10;
    g_assert_cmpuint(cam_container_queue_bytes(&format), ==, 4u << 20);
    format.queue_frames = 300;
    g_assert_cmpuint(cam_container_queue_bytes(&format), ==, 10000000);
    format.video.bitrate_kbps = 1000000;
    g_assert_cmpuint(cam_container_queue_bytes(&format), ==, 128u << 20);
}

static void test_jpeg_quality(void)
{
    CamStreamConfig config = {.fps = 25, .bitrate_kbps = 2000}; /* 10000 bytes a picture */

    g_assert_cmpint(cam_jpeg_quality_next(&config, 75, 10000), ==, 75);
    g_assert_cmpint(cam_jpeg_quality_next(&config, 75, 12000), ==, 74);
    g_assert_cmpint(cam_jpeg_quality_next(&config, 75, 50000), ==, 70);
    g_assert_cmpint(cam_jpeg_quality_next(&config, 75, 5000), ==, 76);
    g_assert_cmpint(cam_jpeg_quality_next(&config, 95, 1), ==, 95);
    g_assert_cmpint(cam_jpeg_quality_next(&config, 10, 50000), ==, 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/recording/combinations", test_combinations);
    g_test_add_func("/recording/defaults", test_defaults);
    g_test_add_func("/recording/modes", test_modes);
    g_test_add_func("/recording/limits", test_limits);
    g_test_add_func("/recording/ring", test_ring);
    g_test_add_func("/recording/avi-header", test_avi_header);
    g_test_add_func("/recording/queue", test_queue);
    g_test_add_func("/recording/jpeg-quality", test_jpeg_quality);
    return g_test_run();
}
