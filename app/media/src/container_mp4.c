/* Fragmented MP4: what was written plays without its end. */
#include "container_private.h"

#include <gst/app/gstappsrc.h>

#define FRAGMENT_MS 250u

typedef struct {
    CamContainer base;
    GstElement *pipeline;
    GstAppSrc *video, *audio;
} CamMp4;

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    CamContainer *base = user_data;
    g_autoptr(GError) error = NULL;

    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message, &error, NULL);
        cam_container_fail(
            base, g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT),
            error->message);
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        cam_container_ended(base);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static GstCaps *video_caps(const CamStreamConfig *config)
{
    return gst_caps_new_simple(config->codec == CAM_VIDEO_H265 ? "video/x-h265" : "video/x-h264",
                               "stream-format", G_TYPE_STRING, "byte-stream", "alignment",
                               G_TYPE_STRING, "au", "width", G_TYPE_INT, config->width, "height",
                               G_TYPE_INT, config->height, "framerate", GST_TYPE_FRACTION,
                               config->fps, 1, NULL);
}

static GstElement *make_source(GstCaps *caps)
{
    GstElement *source = gst_element_factory_make("appsrc", NULL);

    g_object_set(source, "format", GST_FORMAT_TIME, "max-bytes", (guint64)0, "caps", caps, NULL);
    return source;
}

static void link_to_mux(GstElement *element, GstElement *mux, const char *template, guint scale)
{
    GstPad *pad = gst_element_request_pad_simple(mux, template);
    GstPad *source = gst_element_get_static_pad(element, "src");

    if (scale)
        g_object_set(pad, "trak-timescale", scale, NULL);
    gst_pad_link(source, pad);
    gst_object_unref(source);
    gst_object_unref(pad);
}

/* The parser believes the rate in the stream, which slow motion does not have. */
static GstPadProbeReturn set_duration(GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
    CamMp4 *self = user_data;
    GstBuffer *unit = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));

    GST_BUFFER_DURATION(unit) = GST_SECOND / (guint64)self->base.format.video.fps;
    info->data = unit;
    return GST_PAD_PROBE_OK;
}

static void add_video(CamMp4 *self, GstElement *mux)
{
    const CamStreamConfig *config = &self->base.format.video;
    GstCaps *caps = video_caps(config);
    GstElement *source = make_source(caps);
    GstElement *parse =
        gst_element_factory_make(config->codec == CAM_VIDEO_H265 ? "h265parse" : "h264parse", NULL);
    GstElement *filter = gst_element_factory_make("capsfilter", NULL);
    GstPad *parsed;

    gst_caps_unref(caps);
    /* hvc1: parameter sets in the header alone, which more players take. */
    caps = gst_caps_from_string(config->codec == CAM_VIDEO_H265
                                    ? "video/x-h265,stream-format=hvc1,alignment=au"
                                    : "video/x-h264,stream-format=avc,alignment=au");
    g_object_set(filter, "caps", caps, NULL);
    gst_caps_unref(caps);
    self->video = GST_APP_SRC(source);
    gst_bin_add_many(GST_BIN(self->pipeline), source, parse, filter, NULL);
    gst_element_link_many(source, parse, filter, NULL);
    parsed = gst_element_get_static_pad(filter, "src");
    gst_pad_add_probe(parsed, GST_PAD_PROBE_TYPE_BUFFER, set_duration, self, NULL);
    gst_object_unref(parsed);
    /* A time scale that frame durations divide: 1000 units a frame. */
    link_to_mux(filter, mux, "video_%u", (guint)config->fps * 1000);
}

static void add_audio(CamMp4 *self, GstElement *mux)
{
    GstElement *source = make_source(self->base.format.audio_caps);

    self->audio = GST_APP_SRC(source);
    gst_bin_add(GST_BIN(self->pipeline), source);
    link_to_mux(source, mux, "audio_%u", 0);
}

static void mp4_begin(CamContainer *base, const char *path)
{
    CamMp4 *self = (CamMp4 *)base;
    GstElement *mux = gst_element_factory_make("mp4mux", NULL);
    GstElement *sink = gst_element_factory_make("filesink", NULL);
    GstBus *bus;

    self->pipeline = gst_pipeline_new(NULL);
    g_object_set(mux, "fragment-duration", base->format.frugal ? 1u : FRAGMENT_MS,
                 "movie-timescale", (guint)base->format.video.fps * 1000, NULL);
    g_object_set(sink, "location", path, "sync", FALSE, "async", FALSE, NULL);
    gst_util_set_object_arg(G_OBJECT(sink), "buffer-mode", "unbuffered");
    gst_bin_add_many(GST_BIN(self->pipeline), mux, sink, NULL);
    add_video(self, mux);
    if (base->format.has_audio)
        add_audio(self, mux);
    gst_element_link(mux, sink);
    cam_pipeline_use_timeline(self->pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    gst_element_set_state(self->pipeline, GST_STATE_PLAYING);
}

static gboolean mp4_push_video(CamContainer *base, GstBuffer *unit)
{
    return gst_app_src_push_buffer(((CamMp4 *)base)->video, unit) == GST_FLOW_OK;
}

static gboolean mp4_push_audio(CamContainer *base, GstBuffer *unit)
{
    return gst_app_src_push_buffer(((CamMp4 *)base)->audio, unit) == GST_FLOW_OK;
}

static gsize mp4_queued(CamContainer *base)
{
    CamMp4 *self = (CamMp4 *)base;
    gsize bytes = gst_app_src_get_current_level_bytes(self->video);

    return self->audio ? bytes + gst_app_src_get_current_level_bytes(self->audio) : bytes;
}

static void mp4_end(CamContainer *base)
{
    CamMp4 *self = (CamMp4 *)base;

    gst_app_src_end_of_stream(self->video);
    if (self->audio)
        gst_app_src_end_of_stream(self->audio);
}

static void mp4_stop(CamContainer *base)
{
    CamMp4 *self = (CamMp4 *)base;
    GstBus *bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));

    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
    gst_object_unref(bus);
    gst_object_unref(self->pipeline);
}

static void mp4_free(CamContainer *base)
{
    g_free(base);
}

static const CamContainerClass mp4_class = {
    .begin = mp4_begin,
    .push_video = mp4_push_video,
    .push_audio = mp4_push_audio,
    .queued = mp4_queued,
    .end = mp4_end,
    .stop = mp4_stop,
    .free = mp4_free,
};

CamContainer *cam_mp4_new(void)
{
    CamMp4 *self = g_new0(CamMp4, 1);

    self->base.klass = &mp4_class;
    return &self->base;
}
