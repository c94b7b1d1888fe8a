#include "encoder.h"
#include "encoder_elements.h"
#include "log.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>
#include <string.h>

/* Raw frames that wait are large: besides a second's worth, this much memory. */
#define QUEUE_MAX_BYTES (96 * 1024 * 1024)

struct _CamEncoder {
    CamEncoderEvents events;
    gpointer user_data;
    GstElement *pipeline;
    GstAppSrc *source;
    GstElement *element;
    GstCaps *caps; /* of the newest frame, with the nominal rate */
    GstCaps *caps_from;
    GstElement *size;
    guint max_frames;
    CamStreamConfig config;
    GstClockTime entered; /* the frame in the encoder; its one thread only */
    GMutex times_lock;
    guint64 total_us;
    guint timed_frames;
};

static GstPadProbeReturn on_enter(GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
    CamEncoder *self = user_data;

    self->entered = cam_now();
    return GST_PAD_PROBE_OK;
}

/* JPEG has no rate control of its own. */
static void follow_bitrate(CamEncoder *self, gsize bytes)
{
    int quality, next;

    g_object_get(self->element, "quality", &quality, NULL);
    next = cam_jpeg_quality_next(&self->config, quality, bytes);
    if (next != quality)
        g_object_set(self->element, "quality", next, NULL);
}

static GstPadProbeReturn on_leave(GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
    CamEncoder *self = user_data;

    g_mutex_lock(&self->times_lock);
    self->total_us += (cam_now() - self->entered) / 1000;
    self->timed_frames++;
    g_mutex_unlock(&self->times_lock);
    if (self->config.codec == CAM_VIDEO_MJPEG)
        follow_bitrate(self, gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info)));
    return GST_PAD_PROBE_OK;
}

static void add_probe(GstElement *element, const char *pad_name, GstPadProbeCallback probe,
                      CamEncoder *self)
{
    GstPad *pad = gst_element_get_static_pad(element, pad_name);

    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, probe, self, NULL);
    gst_object_unref(pad);
}

static GstFlowReturn on_sample(GstAppSink *sink, gpointer user_data)
{
    CamEncoder *self = user_data;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    GstBuffer *au;
    guint64 running = 0;

    if (!sample)
        return GST_FLOW_EOS;
    /* x264enc moves its timestamps (and its segment with them) 1000 hours ahead, to have room for
     * negative ones; running time undoes that. */
    au = gst_buffer_copy(gst_sample_get_buffer(sample));
    gst_segment_to_running_time_full(gst_sample_get_segment(sample), GST_FORMAT_TIME,
                                     GST_BUFFER_PTS(au), &running);
    GST_BUFFER_PTS(au) = running;
    GST_BUFFER_DTS(au) = running;
    GST_BUFFER_DURATION(au) = GST_SECOND / (guint64)self->config.fps;
    gst_sample_unref(sample);
    self->events.output(self, au, self->user_data);
    return GST_FLOW_OK;
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    CamEncoder *self = user_data;

    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        g_autoptr(GError) error = NULL;

        gst_message_parse_error(message, &error, NULL);
        self->events.failed(self, error->message, self->user_data);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static GstElement *caps_filter(GstCaps *caps)
{
    GstElement *filter = gst_element_factory_make("capsfilter", NULL);

    g_object_set(filter, "caps", caps, NULL);
    gst_caps_unref(caps);
    return filter;
}

static GstCaps *raw_caps(const CamStreamConfig *config)
{
    GstCaps *caps =
        gst_caps_new_simple("video/x-raw", "width", G_TYPE_INT, config->width, "height", G_TYPE_INT,
                            config->height, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);

    if (*config->colorimetry)
        gst_caps_set_simple(caps, "colorimetry", G_TYPE_STRING, config->colorimetry, NULL);
    return caps;
}

static GstElement *make_parser(CamVideoCodec codec)
{
    const char *name = cam_encoder_element_parser(codec);
    GstElement *parser = gst_element_factory_make(name ? name : "identity", NULL);

    /* Parameter sets before each key frame. */
    if (parser && name)
        g_object_set(parser, "config-interval", -1, NULL);
    return parser;
}

/* appsrc ! videoscale ! videoconvert ! size ! encoder ! profile ! (parser) ! format ! appsink;
 * scaling and converting pass frames through untouched where there is nothing to do. */
static gboolean build(CamEncoder *self, const char *factory, const CamStreamConfig *config)
{
    GstAppSinkCallbacks callbacks = {.new_sample = on_sample};
    GstElement *source = gst_element_factory_make("appsrc", NULL);
    GstElement *scale = gst_element_factory_make("videoscale", NULL);
    GstElement *convert = gst_element_factory_make("videoconvert", NULL);
    GstElement *size = caps_filter(raw_caps(config));
    GstElement *profile = caps_filter(cam_encoder_element_caps(factory, config->codec));
    GstElement *parse = make_parser(config->codec);
    GstElement *format = caps_filter(cam_encoder_element_caps(factory, config->codec));
    GstElement *sink = gst_element_factory_make("appsink", NULL);
    GstBus *bus;

    self->element = gst_element_factory_make(factory, NULL);
    self->pipeline = gst_pipeline_new(NULL);
    if (!source || !scale || !convert || !self->element || !parse || !sink)
        return FALSE;
    self->source = GST_APP_SRC(source);
    self->size = size;
    g_object_set(source, "format", GST_FORMAT_TIME, "is-live", TRUE, "max-bytes", (guint64)0,
                 "emit-signals", FALSE, NULL);
    cam_encoder_element_configure(self->element, factory, config);
    g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, NULL);
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, self, NULL);
    gst_bin_add_many(GST_BIN(self->pipeline), source, scale, convert, size, self->element, profile,
                     parse, format, sink, NULL);
    if (!gst_element_link_many(source, scale, convert, size, self->element, profile, parse, format,
                               sink, NULL))
        return FALSE;
    add_probe(self->element, "sink", on_enter, self);
    add_probe(self->element, "src", on_leave, self);
    cam_pipeline_use_timeline(self->pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    return gst_element_set_state(self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
}

CamEncoder *cam_encoder_new(const char *factory, const CamStreamConfig *config,
                            const CamEncoderEvents *events, gpointer user_data)
{
    CamEncoder *self = g_new0(CamEncoder, 1);

    self->events = *events;
    self->user_data = user_data;
    self->config = *config;
    self->max_frames = (guint)MAX(config->fps, 10);
    g_mutex_init(&self->times_lock);
    if (!build(self, factory, config)) {
        cam_log(CAM_LOG_ERROR, "encoder", "%s cannot encode %dx%d", factory, config->width,
                config->height);
        cam_encoder_free(self);
        return NULL;
    }
    return self;
}

void cam_encoder_free(CamEncoder *self)
{
    GstBus *bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));

    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
    gst_object_unref(bus);
    gst_object_unref(self->pipeline);
    gst_clear_caps(&self->caps);
    gst_clear_caps(&self->caps_from);
    g_mutex_clear(&self->times_lock);
    g_free(self);
}

/* Pictures that come later with other colours (the "no signal" picture, another mode of the camera)
 * are converted, so that the parameter sets stay. */
static void keep_colorimetry(CamEncoder *self, GstCaps *caps)
{
    const char *colorimetry =
        gst_structure_get_string(gst_caps_get_structure(caps, 0), "colorimetry");
    GstCaps *raw;

    if (*self->config.colorimetry || !colorimetry)
        return;
    g_strlcpy(self->config.colorimetry, colorimetry, sizeof(self->config.colorimetry));
    raw = raw_caps(&self->config);
    g_object_set(self->size, "caps", raw, NULL);
    gst_caps_unref(raw);
}

const char *cam_encoder_colorimetry(CamEncoder *self)
{
    return self->config.colorimetry;
}

/* The encoder is told its stream's nominal rate whatever the source says, for the same reason. */
static void follow_caps(CamEncoder *self, GstCaps *caps)
{
    if (self->caps_from == caps)
        return;
    keep_colorimetry(self, caps);
    gst_caps_replace(&self->caps_from, caps);
    gst_clear_caps(&self->caps);
    self->caps = gst_caps_copy(caps);
    gst_caps_set_simple(self->caps, "framerate", GST_TYPE_FRACTION,
                        cam_stream_config_shown_fps(&self->config), 1, NULL);
    gst_app_src_set_caps(self->source, self->caps);
}

gboolean cam_encoder_push(CamEncoder *self, GstBuffer *buffer, GstCaps *caps, GstClockTime pts)
{
    GstBuffer *copy;

    if (gst_app_src_get_current_level_buffers(self->source) >= self->max_frames ||
        gst_app_src_get_current_level_bytes(self->source) > QUEUE_MAX_BYTES)
        return FALSE;
    follow_caps(self, caps);
    copy = gst_buffer_copy(buffer);
    GST_BUFFER_PTS(copy) = pts;
    GST_BUFFER_DTS(copy) = GST_CLOCK_TIME_NONE;
    GST_BUFFER_DURATION(copy) = GST_SECOND / (guint64)self->config.fps;
    return gst_app_src_push_buffer(self->source, copy) == GST_FLOW_OK;
}

void cam_encoder_force_key(CamEncoder *self)
{
    GstPad *pad = gst_element_get_static_pad(self->element, "src");

    gst_pad_send_event(pad,
                       gst_video_event_new_upstream_force_key_unit(GST_CLOCK_TIME_NONE, TRUE, 0));
    gst_object_unref(pad);
}

void cam_encoder_take_times(CamEncoder *self, guint64 *total_us, guint *frames)
{
    g_mutex_lock(&self->times_lock);
    *total_us = self->total_us;
    *frames = self->timed_frames;
    self->total_us = 0;
    self->timed_frames = 0;
    g_mutex_unlock(&self->times_lock);
}
