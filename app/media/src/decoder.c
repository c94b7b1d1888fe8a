#include "decoder.h"
#include "log.h"
#include "silence.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

#define SILENCE (5 * GST_SECOND)
/* A decoder that cannot keep up must not fill the memory. */
#define QUEUE_MAX_BYTES (16 * 1024 * 1024)

struct _CamDecoder {
    CamDecoderOutput output;
    gpointer user_data;
    GstElement *pipeline;
    GstAppSrc *source;
    gboolean need_key;
    GMutex lock; /* all below */
    CamSilence silence;
    gboolean broken;
};

static void set_broken(CamDecoder *self, const char *reason)
{
    gboolean before;

    g_mutex_lock(&self->lock);
    before = self->broken;
    self->broken = TRUE;
    g_mutex_unlock(&self->lock);
    if (!before)
        cam_log(CAM_LOG_WARN, "decoder", "%s", reason);
}

gboolean cam_decoder_is_broken(CamDecoder *self)
{
    gboolean broken;

    g_mutex_lock(&self->lock);
    broken = self->broken;
    g_mutex_unlock(&self->lock);
    return broken;
}

/* Takes all messages, which nobody else would. */
static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        g_autoptr(GError) error = NULL;

        gst_message_parse_error(message, &error, NULL);
        set_broken(user_data, error->message);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static GstFlowReturn on_sample(GstAppSink *sink, gpointer user_data)
{
    CamDecoder *self = user_data;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    GstBuffer *buffer;

    if (!sample)
        return GST_FLOW_EOS;
    g_mutex_lock(&self->lock);
    cam_silence_ended(&self->silence);
    g_mutex_unlock(&self->lock);
    buffer = gst_buffer_ref(gst_sample_get_buffer(sample));
    self->output(self, buffer, gst_sample_get_caps(sample), GST_BUFFER_PTS(buffer),
                 self->user_data);
    gst_sample_unref(sample);
    return GST_FLOW_OK;
}

static GstElement *make_decoder(void)
{
    GstElement *decoder = gst_element_factory_make("avdec_h264", NULL);

    /* Frame threads would hold frames back. */
    if (decoder)
        g_object_set(decoder, "max-threads", 1, NULL);
    else
        decoder = gst_element_factory_make("openh264dec", NULL);
    return decoder;
}

CamDecoder *cam_decoder_new(CamDecoderOutput output, gpointer user_data)
{
    GstAppSinkCallbacks callbacks = {.new_sample = on_sample};
    GstElement *decoder = make_decoder();
    GstElement *source, *parse, *convert, *sink;
    GstCaps *caps;
    CamDecoder *self;
    GstBus *bus;

    if (!decoder) {
        cam_log(CAM_LOG_ERROR, "decoder", "no H.264 decoder is installed");
        return NULL;
    }
    self = g_new0(CamDecoder, 1);
    self->output = output;
    self->user_data = user_data;
    self->need_key = TRUE;
    g_mutex_init(&self->lock);
    source = gst_element_factory_make("appsrc", NULL);
    parse = gst_element_factory_make("h264parse", NULL);
    convert = gst_element_factory_make("videoconvert", NULL);
    sink = gst_element_factory_make("appsink", NULL);
    self->source = GST_APP_SRC(source);
    caps = gst_caps_from_string("video/x-h264,stream-format=byte-stream,alignment=au");
    g_object_set(source, "format", GST_FORMAT_TIME, "is-live", TRUE, "max-bytes", (guint64)0,
                 "caps", caps, NULL);
    gst_caps_unref(caps);
    caps = gst_caps_from_string("video/x-raw,format=I420");
    g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, "caps", caps,
                 NULL);
    gst_caps_unref(caps);
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, self, NULL);
    self->pipeline = gst_pipeline_new(NULL);
    gst_bin_add_many(GST_BIN(self->pipeline), source, parse, decoder, convert, sink, NULL);
    gst_element_link_many(source, parse, decoder, convert, sink, NULL);
    cam_pipeline_use_timeline(self->pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    gst_element_set_state(self->pipeline, GST_STATE_PLAYING);
    return self;
}

void cam_decoder_free(CamDecoder *self)
{
    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_object_unref(self->pipeline);
    g_mutex_clear(&self->lock);
    g_free(self);
}

static void feed(CamDecoder *self, GstBuffer *au)
{
    gboolean silent;

    g_mutex_lock(&self->lock);
    silent = cam_silence_fed(&self->silence, SILENCE, cam_now());
    g_mutex_unlock(&self->lock);
    if (silent)
        set_broken(self, "the decoder gives no pictures");
    gst_app_src_push_buffer(self->source, gst_buffer_copy(au));
}

void cam_decoder_push(CamDecoder *self, GstBuffer *au)
{
    if (!GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT))
        self->need_key = FALSE;
    if (gst_app_src_get_current_level_bytes(self->source) > QUEUE_MAX_BYTES)
        self->need_key = TRUE;
    if (!self->need_key)
        feed(self, au);
}
