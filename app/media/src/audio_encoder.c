#include "audio_encoder.h"
#include "audio.h"
#include "audio_codec.h"
#include "log.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

/* A second's worth of blocks. */
#define MAX_BLOCKS 50
/* The clock of a sound card is not the helper's: so far the times of the units may be off before
 * they are set right. */
#define TIME_TOLERANCE (5 * GST_MSECOND)

struct _CamAudioEncoder {
    CamAudioEncoderEvents events;
    gpointer user_data;
    CamAudioCodec codec;
    GstElement *pipeline;
    GstAppSrc *source;
};

/* When the sound that UNIT is decoded to was heard. */
static void set_times(CamAudioEncoder *self, GstBuffer *unit, GstClockTime pts)
{
    GstClockTime whole = cam_audio_codec_unit(self->codec);
    GstClockTime delay = cam_audio_codec_delay(self->codec);
    GstClockTime duration = GST_BUFFER_DURATION(unit);

    if (self->codec != CAM_AUDIO_PCMU) {
        /* Opus takes its delay from the length of the first unit, which is whole all the same. */
        if (GST_CLOCK_TIME_IS_VALID(duration) && duration < whole)
            delay += whole - duration;
        GST_BUFFER_DURATION(unit) = whole;
    }
    GST_BUFFER_PTS(unit) = pts > delay ? pts - delay : 0;
    GST_BUFFER_DTS(unit) = GST_BUFFER_PTS(unit);
    GST_BUFFER_FLAG_UNSET(unit, GST_BUFFER_FLAG_DISCONT);
}

static GstFlowReturn on_sample(GstAppSink *sink, gpointer user_data)
{
    CamAudioEncoder *self = user_data;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    GstBuffer *unit;
    GstClockTime pts;

    if (!sample)
        return GST_FLOW_EOS;
    unit = gst_buffer_copy(gst_sample_get_buffer(sample));
    pts = gst_segment_to_running_time(gst_sample_get_segment(sample), GST_FORMAT_TIME,
                                      GST_BUFFER_PTS(unit));
    if (GST_CLOCK_TIME_IS_VALID(pts) && gst_buffer_get_size(unit) > 0) {
        set_times(self, unit, pts);
        self->events.output(self, unit, gst_sample_get_caps(sample), self->user_data);
    } else {
        gst_buffer_unref(unit);
    }
    gst_sample_unref(sample);
    return GST_FLOW_OK;
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    CamAudioEncoder *self = user_data;

    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        g_autoptr(GError) error = NULL;

        gst_message_parse_error(message, &error, NULL);
        self->events.failed(self, error->message, self->user_data);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static GstElement *make_source(CamAudioEncoder *self)
{
    GstElement *source = gst_element_factory_make("appsrc", NULL);
    GstCaps *caps = cam_audio_codec_caps(CAM_AUDIO_PCM);

    g_object_set(source, "format", GST_FORMAT_TIME, "is-live", TRUE, "max-bytes", (guint64)0,
                 "caps", caps, NULL);
    gst_caps_unref(caps);
    self->source = GST_APP_SRC(source);
    return source;
}

static GstElement *make_sink(CamAudioEncoder *self)
{
    GstAppSinkCallbacks callbacks = {.new_sample = on_sample};
    GstElement *sink = gst_element_factory_make("appsink", NULL);

    g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, NULL);
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, self, NULL);
    return sink;
}

/* appsrc ! audioconvert ! audioresample ! input ! encoder ! appsink */
static gboolean build(CamAudioEncoder *self)
{
    GstElement *encoder = cam_audio_codec_element(self->codec);
    GstElement *convert = gst_element_factory_make("audioconvert", NULL);
    GstElement *resample = gst_element_factory_make("audioresample", NULL);
    GstElement *input = gst_element_factory_make("capsfilter", NULL);
    GstElement *source = make_source(self), *sink = make_sink(self);
    GstCaps *caps = cam_audio_codec_input(self->codec);
    GstBus *bus;

    g_object_set(input, "caps", caps, NULL);
    gst_caps_unref(caps);
    if (g_object_class_find_property(G_OBJECT_GET_CLASS(encoder), "tolerance"))
        g_object_set(encoder, "tolerance", (gint64)TIME_TOLERANCE, NULL);
    self->pipeline = gst_pipeline_new(NULL);
    gst_bin_add_many(GST_BIN(self->pipeline), source, convert, resample, input, encoder, sink,
                     NULL);
    if (!gst_element_link_many(source, convert, resample, input, encoder, sink, NULL))
        return FALSE;
    cam_pipeline_use_timeline(self->pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    return gst_element_set_state(self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
}

CamAudioEncoder *cam_audio_encoder_new(CamAudioCodec codec, const CamAudioEncoderEvents *events,
                                       gpointer user_data)
{
    CamAudioEncoder *self = g_new0(CamAudioEncoder, 1);

    self->events = *events;
    self->user_data = user_data;
    self->codec = codec;
    if (!build(self)) {
        cam_log(CAM_LOG_ERROR, "sound", "cannot encode %s", cam_audio_codec_name(codec));
        cam_audio_encoder_free(self);
        return NULL;
    }
    return self;
}

void cam_audio_encoder_free(CamAudioEncoder *self)
{
    GstBus *bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));

    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
    gst_object_unref(bus);
    gst_object_unref(self->pipeline);
    g_free(self);
}

gboolean cam_audio_encoder_push(CamAudioEncoder *self, GstBuffer *pcm)
{
    if (gst_app_src_get_current_level_buffers(self->source) >= MAX_BLOCKS)
        return FALSE;
    return gst_app_src_push_buffer(self->source, gst_buffer_copy(pcm)) == GST_FLOW_OK;
}
