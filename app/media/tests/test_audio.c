/* Sound from its source to its consumers: who comes and goes, and when what is heard was made. */
#include "audio.h"
#include "audio_codec.h"
#include "ending.h"
#include "wait.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

#define LOUD 5000

/* Everything that one consumer got. */
typedef struct {
    GMutex lock;
    GPtrArray *units;
    gboolean refuse;
} Ear;

static gboolean hear(GstBuffer *unit, gpointer user_data)
{
    Ear *ear = user_data;
    gboolean taken;

    g_mutex_lock(&ear->lock);
    taken = !ear->refuse;
    if (taken)
        g_ptr_array_add(ear->units, unit);
    g_mutex_unlock(&ear->lock);
    if (!taken)
        gst_buffer_unref(unit);
    return taken;
}

static void ear_init(Ear *ear)
{
    *ear = (Ear){.units = g_ptr_array_new_with_free_func((GDestroyNotify)gst_buffer_unref)};
    g_mutex_init(&ear->lock);
}

static void ear_clear(Ear *ear)
{
    g_ptr_array_unref(ear->units);
    g_mutex_clear(&ear->lock);
}

static guint heard(Ear *ear)
{
    guint n;

    g_mutex_lock(&ear->lock);
    n = ear->units->len;
    g_mutex_unlock(&ear->lock);
    return n;
}

static char *state_of(CamAudio *audio)
{
    JsonObject *stats = cam_audio_stats(audio);
    char *state = g_strdup(json_object_get_string_member(stats, "state"));

    json_object_unref(stats);
    return state;
}

static gboolean is_idle(gpointer audio)
{
    g_autofree char *state = state_of(audio);

    return g_str_equal(state, "idle") && !cam_endings_pending();
}

static CamAudio *test_audio(void)
{
    CamAudioSpec spec = {.type = CAM_AUDIO_TEST};

    return cam_audio_new(&spec, 0);
}

static void end(CamAudio *audio)
{
    cam_audio_close(audio);
    g_assert_true(wait_for(is_idle, audio));
    cam_audio_unref(audio);
}

static const char *decoder_of(CamAudioCodec codec)
{
    static const char *const names[] = {"avdec_aac", "opusdec", "mulawdec", "mpg123audiodec",
                                        "identity"};

    return names[codec];
}

/* Every sample of UNITS as a decoder gives them, with the time of each buffer. */
static GPtrArray *decode(CamAudio *audio, CamAudioCodec codec, GPtrArray *units)
{
    g_autofree char *description =
        g_strdup_printf("appsrc name=in format=time ! %s ! audioconvert ! audioresample ! "
                        "audio/x-raw,format=S16LE,rate=48000,channels=2 ! "
                        "appsink name=out sync=false",
                        decoder_of(codec));
    GstElement *pipeline = gst_parse_launch(description, NULL);
    GstElement *in = gst_bin_get_by_name(GST_BIN(pipeline), "in");
    GstElement *out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    GPtrArray *pcm = g_ptr_array_new_with_free_func((GDestroyNotify)gst_buffer_unref);
    GstCaps *caps = gst_caps_make_writable(cam_audio_caps(audio, codec));
    GstSample *sample;

    /* Over RTP a decoder does not hear of Opus' first samples. */
    gst_structure_remove_field(gst_caps_get_structure(caps, 0), "streamheader");
    gst_app_src_set_caps(GST_APP_SRC(in), caps);
    gst_caps_unref(caps);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    for (guint i = 0; i < units->len; i++)
        gst_app_src_push_buffer(GST_APP_SRC(in), gst_buffer_ref(units->pdata[i]));
    gst_app_src_end_of_stream(GST_APP_SRC(in));
    while ((sample = gst_app_sink_pull_sample(GST_APP_SINK(out)))) {
        g_ptr_array_add(pcm, gst_buffer_ref(gst_sample_get_buffer(sample)));
        gst_sample_unref(sample);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(in);
    gst_object_unref(out);
    gst_object_unref(pipeline);
    return pcm;
}

/* How far from a whole second of the wall clock each beep in PCM begins; returns how many. */
static guint beeps(GPtrArray *pcm, double *worst_ms)
{
    guint n = 0;
    guint64 quiet = 0;

    *worst_ms = 0;
    for (guint b = 0; b < pcm->len; b++) {
        GstBuffer *buffer = pcm->pdata[b];
        GstMapInfo map;
        const gint16 *samples;

        gst_buffer_map(buffer, &map, GST_MAP_READ);
        samples = (const gint16 *)(const void *)map.data;
        for (gsize i = 0; i < map.size / 4; i++, quiet++) {
            GstClockTime at;
            double off;

            if (ABS(samples[2 * i]) < LOUD)
                continue;
            if (quiet > CAM_AUDIO_RATE / 2) {
                at = GST_BUFFER_PTS(buffer) + i * GST_SECOND / CAM_AUDIO_RATE;
                off = (double)(cam_wall_us(at) % G_USEC_PER_SEC) / 1000;
                off = off > 500 ? off - 1000 : off;
                *worst_ms = MAX(*worst_ms, ABS(off));
                g_test_message("a beep at %+.2f ms", off);
                n++;
            }
            quiet = 0;
        }
        gst_buffer_unmap(buffer, &map);
    }
    return n;
}

static void check_unbroken(GPtrArray *units)
{
    for (guint i = 1; i < units->len; i++) {
        GstBuffer *before = units->pdata[i - 1], *unit = units->pdata[i];
        GstClockTimeDiff gap = GST_CLOCK_DIFF(GST_BUFFER_PTS(before) + GST_BUFFER_DURATION(before),
                                              GST_BUFFER_PTS(unit));

        g_assert_cmpint(ABS(gap), <, 2 * GST_MSECOND);
    }
}

static gboolean has_three_seconds(gpointer ear)
{
    return heard(ear) > 155;
}

/* All codecs at once, each decoded: the beeps are where they belong. */
static void test_sync(void)
{
    CamAudio *audio = test_audio();
    Ear ears[CAM_N_AUDIO_CODECS];
    guint ids[CAM_N_AUDIO_CODECS];

    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++) {
        ear_init(&ears[codec]);
        ids[codec] = cam_audio_attach(audio, codec, &(CamAudioConsumer){hear, &ears[codec]});
        g_assert_cmpuint(ids[codec], >, 0);
    }
    g_assert_true(wait_for(has_three_seconds, &ears[CAM_AUDIO_PCM]));
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++)
        cam_audio_detach(audio, ids[codec]);
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++) {
        GPtrArray *pcm = decode(audio, codec, ears[codec].units);
        double worst;
        guint n;

        g_test_message("%s", cam_audio_codec_name(codec));
        n = beeps(pcm, &worst);
        g_assert_cmpuint(n, >=, 2);
        g_assert_cmpuint(n, <=, 4);
        g_assert_cmpfloat(worst, <, 10);
        check_unbroken(ears[codec].units);
        g_ptr_array_unref(pcm);
        ear_clear(&ears[codec]);
    }
    end(audio);
}

static gboolean has_some(gpointer ear)
{
    return heard(ear) > 20;
}

static guint consumers(CamAudio *audio)
{
    JsonObject *stats = cam_audio_stats(audio);
    guint n = (guint)json_object_get_int_member(stats, "consumers");

    json_object_unref(stats);
    return n;
}

/* One that refuses loses its own units only; all come and go, again and again; idle afterwards. */
static void test_consumers(void)
{
    CamAudio *audio = test_audio();
    Ear good, bad;

    for (int round = 0; round < 2; round++) {
        guint good_id, bad_id;

        ear_init(&good);
        ear_init(&bad);
        bad.refuse = TRUE;
        bad_id = cam_audio_attach(audio, CAM_AUDIO_AAC, &(CamAudioConsumer){hear, &bad});
        good_id = cam_audio_attach(audio, CAM_AUDIO_AAC, &(CamAudioConsumer){hear, &good});
        g_assert_cmpuint(consumers(audio), ==, 2);
        g_assert_true(wait_for(has_some, &good));
        g_assert_cmpuint(heard(&bad), ==, 0);
        cam_audio_detach(audio, bad_id);
        cam_audio_detach(audio, good_id);
        cam_audio_detach(audio, 0);
        check_unbroken(good.units);
        ear_clear(&good);
        ear_clear(&bad);
        g_assert_cmpuint(consumers(audio), ==, 0);
        /* The second time in the middle of the way out. */
        if (round == 0)
            g_assert_true(wait_for(is_idle, audio));
    }
    end(audio);
}

static gboolean has_no_signal(gpointer audio)
{
    g_autofree char *state = state_of(audio);

    return g_str_equal(state, "no_signal");
}

/* A card that is not there: said, nothing invented, and no trouble with the end. */
static void test_absent(void)
{
    CamAudioSpec spec = {.type = CAM_AUDIO_ALSA, .device = (char *)"hw:31,0"};
    CamAudio *audio = cam_audio_new(&spec, 0);
    JsonObject *stats;
    Ear ear;
    guint id;

    ear_init(&ear);
    id = cam_audio_attach(audio, CAM_AUDIO_OPUS, &(CamAudioConsumer){hear, &ear});
    g_assert_true(wait_for(has_no_signal, audio));
    g_assert_cmpuint(heard(&ear), ==, 0);
    stats = cam_audio_stats(audio);
    g_assert_nonnull(json_object_get_string_member(stats, "reason"));
    g_assert_true(json_object_get_null_member(stats, "level_db"));
    json_object_unref(stats);
    cam_audio_detach(audio, id);
    end(audio);
    ear_clear(&ear);
}

/* ALSA's own nothing, which delivers silence as fast as it is read: at no more than its time. */
static void test_alsa(void)
{
    CamAudioSpec spec = {.type = CAM_AUDIO_ALSA, .device = (char *)"null"};
    CamAudio *audio = cam_audio_new(&spec, 0);
    GstClockTime began = cam_now(), first, last;
    Ear ear;
    guint id;

    ear_init(&ear);
    id = cam_audio_attach(audio, CAM_AUDIO_PCM, &(CamAudioConsumer){hear, &ear});
    g_assert_true(wait_for(has_some, &ear));
    cam_audio_detach(audio, id);
    first = GST_BUFFER_PTS(ear.units->pdata[0]);
    last = GST_BUFFER_PTS(ear.units->pdata[ear.units->len - 1]);
    g_assert_cmpuint(first + GST_SECOND, >, began);
    g_assert_cmpuint(last, <, cam_now() + GST_SECOND / 10);
    end(audio);
    ear_clear(&ear);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_audio_codecs_probe();
    g_test_add_func("/audio/consumers", test_consumers);
    g_test_add_func("/audio/absent", test_absent);
    g_test_add_func("/audio/alsa", test_alsa);
    g_test_add_func("/audio/sync", test_sync);
    return g_test_run();
}
