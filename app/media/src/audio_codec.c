#include "audio_codec.h"
#include "audio.h"
#include "audio_encoder.h"
#include "log.h"

#include <string.h>

typedef struct {
    const char *factory;
    const char *settings; /* "name=value …" */
    guint delay_frames;   /* at 48 kHz */
} Candidate;

typedef struct {
    const char *name;
    int rate, channels;
    guint unit_frames; /* at RATE */
    const char *add;   /* "name=true", to the caps that the encoder gives */
    Candidate candidates[4];
    const Candidate *chosen;
    GstCaps *caps;
    GstBuffer *silence;
} Codec;

/* Best first. The delays are measured: of a sound between encoder's input and decoder's output. */
static Codec codecs[CAM_N_AUDIO_CODECS] = {
    [CAM_AUDIO_AAC] = {"aac",
                       CAM_AUDIO_RATE,
                       CAM_AUDIO_CHANNELS,
                       1024,
                       "framed=true",
                       {{"fdkaacenc", "bitrate=128000", 2048},
                        {"avenc_aac", "bitrate=128000", 1024},
                        {"voaacenc", "bitrate=128000", 1600}}},
    [CAM_AUDIO_OPUS] =
        {"opus", CAM_AUDIO_RATE, CAM_AUDIO_CHANNELS, 960, NULL, {{"opusenc", "bitrate=96000", 0}}},
    [CAM_AUDIO_PCMU] = {"pcmu", 8000, 1, 160, NULL, {{"mulawenc", "", 0}}},
    [CAM_AUDIO_MP3] = {"mp3",
                       CAM_AUDIO_RATE,
                       CAM_AUDIO_CHANNELS,
                       1152,
                       "parsed=true",
                       {{"lamemp3enc", "target=bitrate cbr=true bitrate=128", 1105}}},
    [CAM_AUDIO_PCM] = {"pcm", CAM_AUDIO_RATE, CAM_AUDIO_CHANNELS, 960, NULL, {{NULL, NULL, 0}}},
};

const char *cam_audio_codec_name(CamAudioCodec codec)
{
    return codecs[codec].name;
}

gboolean cam_audio_codec_of(const char *name, CamAudioCodec *codec)
{
    for (int i = 0; i < CAM_N_AUDIO_CODECS; i++) {
        if (g_str_equal(codecs[i].name, name)) {
            *codec = i;
            return TRUE;
        }
    }
    return FALSE;
}

GstElement *cam_audio_codec_element(CamAudioCodec codec)
{
    const Candidate *candidate = codecs[codec].chosen;
    GstElement *element = candidate ? gst_element_factory_make(candidate->factory, NULL) : NULL;
    g_auto(GStrv) settings = g_strsplit(candidate ? candidate->settings : "", " ", -1);

    for (char **setting = settings; element && *setting; setting++) {
        g_auto(GStrv) pair = g_strsplit(*setting, "=", 2);

        gst_util_set_object_arg(G_OBJECT(element), pair[0], pair[1]);
    }
    return element;
}

GstCaps *cam_audio_codec_input(CamAudioCodec codec)
{
    return gst_caps_new_simple("audio/x-raw", "rate", G_TYPE_INT, codecs[codec].rate, "channels",
                               G_TYPE_INT, codecs[codec].channels, "layout", G_TYPE_STRING,
                               "interleaved", NULL);
}

GstCaps *cam_audio_codec_caps(CamAudioCodec codec)
{
    return codecs[codec].caps ? gst_caps_ref(codecs[codec].caps) : NULL;
}

GstBuffer *cam_audio_codec_silence(CamAudioCodec codec)
{
    return codecs[codec].silence ? gst_buffer_copy(codecs[codec].silence) : NULL;
}

GstClockTime cam_audio_codec_unit(CamAudioCodec codec)
{
    return gst_util_uint64_scale(codecs[codec].unit_frames, GST_SECOND,
                                 (guint64)codecs[codec].rate);
}

GstClockTime cam_audio_codec_delay(CamAudioCodec codec)
{
    const Candidate *candidate = codecs[codec].chosen;

    return candidate ? gst_util_uint64_scale(candidate->delay_frames, GST_SECOND, CAM_AUDIO_RATE)
                     : 0;
}

/* A short encoding of silence tells more than a description of the element: whether it works here,
 * what its output is called, and what silence looks like. */
#define PROBE_UNITS 4
#define PROBE_BLOCKS 25
#define PROBE_TIMEOUT_US (3 * G_USEC_PER_SEC)

typedef struct {
    GMutex lock;
    GCond wake;
    guint units;
    gboolean failed;
    GstCaps *caps;
    GstBuffer *silence;
} Probe;

static void on_probed(CamAudioEncoder *encoder, GstBuffer *unit, GstCaps *caps, gpointer user_data)
{
    Probe *probe = user_data;

    g_mutex_lock(&probe->lock);
    if (probe->units < PROBE_UNITS) {
        gst_caps_replace(&probe->caps, caps);
        gst_buffer_replace(&probe->silence, unit);
        probe->units++;
        g_cond_signal(&probe->wake);
    }
    g_mutex_unlock(&probe->lock);
    gst_buffer_unref(unit);
}

static void on_probe_failed(CamAudioEncoder *encoder, const char *message, gpointer user_data)
{
    Probe *probe = user_data;

    g_mutex_lock(&probe->lock);
    probe->failed = TRUE;
    g_cond_signal(&probe->wake);
    g_mutex_unlock(&probe->lock);
}

static void push_silence(CamAudioEncoder *encoder)
{
    g_autoptr(GstBuffer) block = gst_buffer_copy_deep(codecs[CAM_AUDIO_PCM].silence);

    for (guint i = 0; i < PROBE_BLOCKS; i++) {
        block = gst_buffer_make_writable(block);
        GST_BUFFER_PTS(block) = i * GST_BUFFER_DURATION(block);
        cam_audio_encoder_push(encoder, block);
    }
}

/* What is kept stands for any moment. */
static void keep(Codec *codec, Probe *probe)
{
    codec->caps = gst_caps_make_writable(g_steal_pointer(&probe->caps));
    if (codec->add) {
        g_auto(GStrv) pair = g_strsplit(codec->add, "=", 2);

        gst_caps_set_simple(codec->caps, pair[0], G_TYPE_BOOLEAN, g_str_equal(pair[1], "true"),
                            NULL);
    }
    codec->silence = gst_buffer_copy_deep(probe->silence);
    GST_BUFFER_PTS(codec->silence) = GST_CLOCK_TIME_NONE;
    GST_BUFFER_DTS(codec->silence) = GST_CLOCK_TIME_NONE;
}

static gboolean probe_chosen(CamAudioCodec codec)
{
    static const CamAudioEncoderEvents events = {on_probed, on_probe_failed};
    gint64 deadline = g_get_monotonic_time() + PROBE_TIMEOUT_US;
    Probe probe = {0};
    CamAudioEncoder *encoder;

    g_mutex_init(&probe.lock);
    g_cond_init(&probe.wake);
    encoder = cam_audio_encoder_new(codec, &events, &probe);
    if (encoder) {
        push_silence(encoder);
        g_mutex_lock(&probe.lock);
        while (probe.units < PROBE_UNITS && !probe.failed &&
               g_cond_wait_until(&probe.wake, &probe.lock, deadline))
            continue;
        g_mutex_unlock(&probe.lock);
        cam_audio_encoder_free(encoder);
    }
    if (probe.units == PROBE_UNITS)
        keep(&codecs[codec], &probe);
    gst_clear_caps(&probe.caps);
    gst_clear_buffer(&probe.silence);
    g_mutex_clear(&probe.lock);
    g_cond_clear(&probe.wake);
    return codecs[codec].caps != NULL;
}

static gboolean exists(const char *factory)
{
    GstElementFactory *found = gst_element_factory_find(factory);

    if (found)
        gst_object_unref(found);
    return found != NULL;
}

static void choose(CamAudioCodec codec)
{
    Codec *self = &codecs[codec];

    for (const Candidate *candidate = self->candidates; candidate->factory; candidate++) {
        if (!exists(candidate->factory))
            continue;
        self->chosen = candidate;
        if (probe_chosen(codec))
            return;
    }
    self->chosen = NULL;
    cam_log(CAM_LOG_WARN, "sound", "no encoder for %s works on this machine", self->name);
}

static void describe_pcm(void)
{
    Codec *pcm = &codecs[CAM_AUDIO_PCM];
    gsize size = pcm->unit_frames * CAM_AUDIO_CHANNELS * sizeof(gint16);

    pcm->caps = cam_audio_codec_input(CAM_AUDIO_PCM);
    gst_caps_set_simple(pcm->caps, "format", G_TYPE_STRING, "S16LE", "channel-mask",
                        GST_TYPE_BITMASK, (guint64)0x3, NULL);
    pcm->silence = gst_buffer_new_allocate(NULL, size, NULL);
    gst_buffer_memset(pcm->silence, 0, 0, size);
    GST_BUFFER_DURATION(pcm->silence) = cam_audio_codec_unit(CAM_AUDIO_PCM);
}

void cam_audio_codecs_probe(void)
{
    describe_pcm();
    for (int i = 0; i < CAM_N_AUDIO_CODECS; i++) {
        if (i != CAM_AUDIO_PCM)
            choose(i);
    }
}
