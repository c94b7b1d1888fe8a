/* A sound card, through ALSA. The device is opened and closed on the source's own thread, because
 * both may take their time. */
#include "audio.h"
#include "audio_source.h"
#include "audio_timeline.h"
#include "log.h"

#include <gst/app/gstappsink.h>

#define RETRY (1 * GST_SECOND)
/* A device that is there but gives nothing is as lost as one that is gone. */
#define STALL (3 * GST_SECOND)
/* Some take that long to begin. A limit that has not sufficed is doubled at the next try, or they
 * would never be heard. */
#define FIRST_BLOCK_MOST (40 * GST_SECOND)
#define STEP (250 * GST_MSECOND)
/* Of one read, as that of the test tone. */
#define LATENCY_US 20000

typedef struct {
    CamAudioSource base;
    char *device;
    GstElement *pipeline;
    CamAudioTimeline timeline; /* the pipeline's thread only */
    GMutex lock;               /* all below */
    char *error;
    gboolean heard;          /* since it was opened */
    GstClockTime last_block; /* or when it was opened */
    GstClockTime first_block_limit;
} CamAlsaSource;

static GstFlowReturn on_sample(GstAppSink *sink, gpointer user_data)
{
    CamAlsaSource *self = user_data;
    GstClockTime now = cam_now(), pts;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    GstBuffer *pcm;
    GstClockTime duration;

    if (!sample)
        return GST_FLOW_EOS;
    pcm = gst_buffer_copy_deep(gst_sample_get_buffer(sample));
    gst_sample_unref(sample);
    duration = gst_util_uint64_scale(gst_buffer_get_size(pcm), GST_SECOND,
                                     CAM_AUDIO_RATE * CAM_AUDIO_CHANNELS * sizeof(gint16));
    g_mutex_lock(&self->lock);
    self->last_block = now;
    self->heard = TRUE;
    g_mutex_unlock(&self->lock);
    if (cam_audio_timeline_place(&self->timeline, now, duration, &pts))
        cam_audio_source_deliver(&self->base, pcm, pts);
    else
        gst_buffer_unref(pcm);
    return GST_FLOW_OK;
}

static void set_error(CamAlsaSource *self, const char *message)
{
    g_mutex_lock(&self->lock);
    if (!self->error)
        self->error = g_strdup(message);
    g_mutex_unlock(&self->lock);
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        g_autoptr(GError) error = NULL;

        gst_message_parse_error(message, &error, NULL);
        set_error(user_data, error->message);
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        set_error(user_data, "the sound ended");
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static GstElement *make_sink(CamAlsaSource *self)
{
    GstAppSinkCallbacks callbacks = {.new_sample = on_sample};
    GstElement *sink = gst_element_factory_make("appsink", NULL);
    GstCaps *caps = gst_caps_new_simple(
        "audio/x-raw", "format", G_TYPE_STRING, "S16LE", "rate", G_TYPE_INT, CAM_AUDIO_RATE,
        "channels", G_TYPE_INT, CAM_AUDIO_CHANNELS, "layout", G_TYPE_STRING, "interleaved", NULL);

    g_object_set(sink, "caps", caps, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE,
                 NULL);
    gst_caps_unref(caps);
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, self, NULL);
    return sink;
}

/* The time that it takes to be opened is not its silence. */
static void await_first_block(CamAlsaSource *self)
{
    g_mutex_lock(&self->lock);
    self->last_block = cam_now();
    g_mutex_unlock(&self->lock);
}

/* alsasrc ! audioconvert ! audioresample ! appsink */
static gboolean open_device(CamAlsaSource *self)
{
    GstElement *alsa = gst_element_factory_make("alsasrc", NULL);
    GstElement *convert, *resample, *sink;
    GstBus *bus;

    if (!alsa) {
        set_error(self, "this machine has no ALSA plugin for GStreamer");
        return FALSE;
    }
    convert = gst_element_factory_make("audioconvert", NULL);
    resample = gst_element_factory_make("audioresample", NULL);
    sink = make_sink(self);
    g_object_set(alsa, "device", self->device, "provide-clock", FALSE, "latency-time",
                 (gint64)LATENCY_US, NULL);
    gst_util_set_object_arg(G_OBJECT(alsa), "slave-method", "none");
    self->pipeline = gst_pipeline_new(NULL);
    gst_bin_add_many(GST_BIN(self->pipeline), alsa, convert, resample, sink, NULL);
    gst_element_link_many(alsa, convert, resample, sink, NULL);
    cam_pipeline_use_timeline(self->pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    self->timeline = (CamAudioTimeline){0};
    self->heard = FALSE;
    if (gst_element_set_state(self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
        await_first_block(self);
        return TRUE;
    }
    set_error(self, "the sound card cannot be opened");
    return FALSE;
}

static void close_device(CamAlsaSource *self)
{
    GstBus *bus;

    if (!self->pipeline)
        return;
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
    gst_object_unref(bus);
    g_clear_pointer(&self->pipeline, gst_object_unref);
}

/* With lock held. */
static gboolean is_silent(CamAlsaSource *self)
{
    GstClockTime silence = cam_now() - self->last_block;

    if (self->heard)
        return silence > STALL;
    if (silence <= self->first_block_limit)
        return FALSE;
    self->first_block_limit = MIN(2 * self->first_block_limit, FIRST_BLOCK_MOST);
    return TRUE;
}

/* What ended it, to be freed; NULL while it is well. */
static char *trouble(CamAlsaSource *self)
{
    char *error;

    g_mutex_lock(&self->lock);
    error = g_steal_pointer(&self->error);
    if (!error && is_silent(self))
        error = g_strdup("the sound card delivers nothing");
    g_mutex_unlock(&self->lock);
    return error;
}

static void forget_error(CamAlsaSource *self)
{
    g_mutex_lock(&self->lock);
    g_clear_pointer(&self->error, g_free);
    g_mutex_unlock(&self->lock);
}

static gpointer run(gpointer data)
{
    CamAlsaSource *self = data;
    gboolean on = TRUE;

    while (on) {
        g_autofree char *error = NULL;

        open_device(self);
        while (!(error = trouble(self)) && on)
            on = cam_audio_source_sleep_until(&self->base, cam_now() + STEP);
        close_device(self);
        forget_error(self);
        if (!error)
            continue;
        self->base.events->lost(&self->base, error, self->base.owner);
        on = cam_audio_source_sleep_until(&self->base, cam_now() + RETRY);
    }
    return NULL;
}

static void clear(CamAudioSource *source)
{
    CamAlsaSource *self = (CamAlsaSource *)source;

    g_free(self->device);
    g_mutex_clear(&self->lock);
}

static const CamAudioSourceClass alsa_class = {run, clear};

CamAudioSource *cam_audio_source_alsa_new(const char *device)
{
    CamAlsaSource *self = g_new0(CamAlsaSource, 1);

    self->base.klass = &alsa_class;
    self->device = g_strdup(device);
    self->first_block_limit = STALL;
    g_mutex_init(&self->lock);
    return &self->base;
}
