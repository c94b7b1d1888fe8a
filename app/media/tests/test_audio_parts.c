/* The parts that sound is made of: codecs, the test tone, the timeline, an encoder. */
#include "audio.h"
#include "audio_codec.h"
#include "audio_encoder.h"
#include "audio_timeline.h"
#include "audio_tone.h"
#include "wait.h"

#define LOUD 5000

typedef struct {
    GMutex lock;
    GArray *times; /* GstClockTime */
} Output;

static void on_unit(CamAudioEncoder *encoder, GstBuffer *unit, GstCaps *caps, gpointer user_data)
{
    Output *output = user_data;

    g_mutex_lock(&output->lock);
    g_array_append_val(output->times, GST_BUFFER_PTS(unit));
    g_mutex_unlock(&output->lock);
    gst_buffer_unref(unit);
}

static void on_failure(CamAudioEncoder *encoder, const char *message, gpointer user_data)
{
    g_error("%s", message);
}

static gboolean has_both_halves(gpointer data)
{
    Output *output = data;
    gboolean enough;

    g_mutex_lock(&output->lock);
    enough = output->times->len >= 44;
    g_mutex_unlock(&output->lock);
    return enough;
}

static void push_blocks(CamAudioEncoder *encoder, GstClockTime from, guint n)
{
    for (guint i = 0; i < n; i++) {
        GstBuffer *block = cam_audio_codec_silence(CAM_AUDIO_PCM);

        GST_BUFFER_PTS(block) = from + i * GST_BUFFER_DURATION(block);
        g_assert_true(cam_audio_encoder_push(encoder, block));
        gst_buffer_unref(block);
    }
}

/* Sound that stopped for a while: the units say so, and only at that place. */
static void test_gap(void)
{
    static const CamAudioEncoderEvents events = {on_unit, on_failure};
    Output output = {.times = g_array_new(FALSE, FALSE, sizeof(GstClockTime))};
    CamAudioEncoder *encoder;
    guint jumps = 0;

    g_mutex_init(&output.lock);
    encoder = cam_audio_encoder_new(CAM_AUDIO_AAC, &events, &output);
    g_assert_nonnull(encoder);
    push_blocks(encoder, 10 * GST_SECOND, 24);
    push_blocks(encoder, 12 * GST_SECOND, 24);
    g_assert_true(wait_for(has_both_halves, &output));
    cam_audio_encoder_free(encoder);
    for (guint i = 1; i < output.times->len; i++) {
        GstClockTime step = g_array_index(output.times, GstClockTime, i) -
                            g_array_index(output.times, GstClockTime, i - 1);

        if (step > GST_SECOND) {
            /* 24 blocks are 480 ms. */
            g_assert_cmpuint(step, <, 1570 * GST_MSECOND);
            jumps++;
        } else {
            g_assert_cmpuint(step, <, 23 * GST_MSECOND);
        }
    }
    g_assert_cmpuint(jumps, ==, 1);
    g_array_unref(output.times);
    g_mutex_clear(&output.lock);
}

static void test_timeline(void)
{
    const GstClockTime block = 20 * GST_MSECOND;
    CamAudioTimeline timeline = {0};
    GstClockTime pts, before = 0, now = 100 * GST_SECOND;

    /* A card that is slow by 1 in 2000, read unevenly, for 100 s: in step, and no step is seen. */
    for (int i = 0; i < 5000; i++) {
        now += block + 10 * GST_USECOND;
        g_assert_true(
            cam_audio_timeline_place(&timeline, now + (i % 7) * GST_MSECOND, block, &pts));
        g_assert_cmpint(ABS(GST_CLOCK_DIFF(pts + block, now)), <, 8 * GST_MSECOND);
        if (i > 0)
            g_assert_cmpint(ABS(GST_CLOCK_DIFF(before + block, pts)), <, GST_MSECOND / 5);
        before = pts;
    }
    /* Lost samples are a gap. */
    now += GST_SECOND;
    g_assert_true(cam_audio_timeline_place(&timeline, now, block, &pts));
    g_assert_cmpuint(pts, ==, now - block);
    /* Time does not run ahead. */
    for (int i = 0; i < 100; i++)
        cam_audio_timeline_place(&timeline, now, block, &pts);
    g_assert_cmpuint(pts, <, now + 100 * GST_MSECOND);
    g_assert_false(cam_audio_timeline_place(&timeline, now, block, &pts));
}

static void test_tone(void)
{
    gint16 whole[2 * 960], halves[2 * 960];
    guint64 loud = 0;

    cam_audio_tone(whole, 960, 1700000000 * (gint64)G_USEC_PER_SEC + 90000);
    cam_audio_tone(halves, 480, 1700000000 * (gint64)G_USEC_PER_SEC + 90000);
    cam_audio_tone(halves + 960, 480, 1700000000 * (gint64)G_USEC_PER_SEC + 100000);
    g_assert_cmpmem(whole, sizeof(whole), halves, sizeof(halves));
    for (guint i = 0; i < 960; i++) {
        g_assert_cmpint(whole[2 * i], ==, whole[2 * i + 1]);
        loud = ABS(whole[2 * i]) > LOUD ? i : loud;
    }
    g_assert_cmpuint(loud, >, 450);
    g_assert_cmpuint(loud, <, 480);
}

static void test_codecs(void)
{
    for (int i = 0; i < CAM_N_AUDIO_CODECS; i++) {
        GstCaps *caps = cam_audio_codec_caps(i);
        GstBuffer *silence = cam_audio_codec_silence(i);
        CamAudioCodec codec;
        int rate = 0;

        g_assert_true(cam_audio_codec_of(cam_audio_codec_name(i), &codec));
        g_assert_cmpint(codec, ==, i);
        g_assert_nonnull(caps);
        gst_structure_get_int(gst_caps_get_structure(caps, 0), "rate", &rate);
        g_assert_cmpint(rate, ==, i == CAM_AUDIO_PCMU ? 8000 : CAM_AUDIO_RATE);
        g_assert_cmpuint(gst_buffer_get_size(silence), >, 0);
        g_assert_true(GST_BUFFER_DURATION_IS_VALID(silence));
        g_assert_false(GST_BUFFER_PTS_IS_VALID(silence));
        if (i == CAM_AUDIO_AAC)
            g_assert_true(gst_structure_has_field(gst_caps_get_structure(caps, 0), "codec_data"));
        gst_caps_unref(caps);
        gst_buffer_unref(silence);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_audio_codecs_probe();
    g_test_add_func("/audio/codecs", test_codecs);
    g_test_add_func("/audio/tone", test_tone);
    g_test_add_func("/audio/timeline", test_timeline);
    g_test_add_func("/audio/gap", test_gap);
    return g_test_run();
}
