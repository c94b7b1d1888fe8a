#include "lead_in.h"
#include "log.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

/* Key frames that are further apart than that are not ours. */
#define MAX_UNITS 600
#define MAX_BYTES (64u << 20)
#define TIMEOUT_US (4 * G_USEC_PER_SEC)
#define POLL (50 * GST_MSECOND)
/* Nearly as good as what it is made of, for it is soon over. */
#define QUANTIZER 20
#define MARGIN GST_MSECOND

struct _CamLeadIn {
    GstElement *pipeline;
    GstAppSrc *source;
    GstAppSink *sink;
    GstClockTime time;
    GQueue times; /* of the pictures to come, as GstClockTime* */
};

static const char *first_of(const char *const *names)
{
    for (; *names; names++) {
        GstElementFactory *factory = gst_element_factory_find(*names);

        if (!factory)
            continue;
        gst_object_unref(factory);
        return *names;
    }
    return NULL;
}

static const char *decoder_name(void)
{
    static const char *const names[] = {"avdec_h264", "openh264dec", NULL};

    return first_of(names);
}

static const char *encoder_name(void)
{
    static const char *const names[] = {"x264enc", "openh264enc", NULL};

    return first_of(names);
}

gboolean cam_lead_in_works(CamCodec codec)
{
    return codec == CAM_CODEC_H264 && decoder_name() && encoder_name();
}

/* What comes before the wanted picture is only decoded. */
static GstPadProbeReturn on_picture(GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
    CamLeadIn *self = user_data;
    GstBuffer *picture = GST_PAD_PROBE_INFO_BUFFER(info);

    return GST_BUFFER_PTS(picture) + MARGIN < self->time ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

static GstElement *make_encoder(void)
{
    const char *name = encoder_name();
    GstElement *encoder = gst_element_factory_make(name, NULL);

    if (g_str_equal(name, "x264enc")) {
        gst_util_set_object_arg(G_OBJECT(encoder), "tune", "zerolatency");
        gst_util_set_object_arg(G_OBJECT(encoder), "speed-preset", "superfast");
        gst_util_set_object_arg(G_OBJECT(encoder), "pass", "quant");
        g_object_set(encoder, "quantizer", QUANTIZER, "key-int-max", MAX_UNITS, "threads", 1, NULL);
    } else {
        g_object_set(encoder, "bitrate", 4000000u, "gop-size", (guint)MAX_UNITS, NULL);
    }
    return encoder;
}

static void set_caps(GstElement *element, GstCaps *caps)
{
    g_object_set(element, "caps", caps, NULL);
    gst_caps_unref(caps);
}

static gboolean build(CamLeadIn *self, CamTimeline *timeline)
{
    GstElement *parts[] = {gst_element_factory_make("appsrc", NULL),
                           gst_element_factory_make("h264parse", NULL),
                           gst_element_factory_make(decoder_name(), NULL),
                           gst_element_factory_make("videoconvert", NULL),
                           make_encoder(),
                           gst_element_factory_make("capsfilter", NULL),
                           gst_element_factory_make("h264parse", NULL),
                           gst_element_factory_make("appsink", NULL)};
    GstPad *pad;

    self->pipeline = gst_object_ref_sink(gst_pipeline_new(NULL));
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (!parts[i])
            return FALSE;
        gst_bin_add(GST_BIN(self->pipeline), parts[i]);
        if (i > 0 && !gst_element_link(parts[i - 1], parts[i]))
            return FALSE;
    }
    self->source = GST_APP_SRC(parts[0]);
    self->sink = GST_APP_SINK(parts[7]);
    g_object_set(parts[0], "format", GST_FORMAT_TIME, "max-bytes", (guint64)0, NULL);
    set_caps(parts[0], cam_timeline_caps(timeline, CAM_TRACK_VIDEO));
    if (g_object_class_find_property(G_OBJECT_GET_CLASS(parts[2]), "max-threads"))
        g_object_set(parts[2], "max-threads", 1, NULL);
    set_caps(parts[5], gst_caps_from_string("video/x-h264,profile=constrained-baseline"));
    g_object_set(parts[6], "config-interval", -1, NULL);
    set_caps(parts[7], gst_caps_from_string("video/x-h264,stream-format=byte-stream,alignment=au"));
    /* It is encoded as it is taken. */
    g_object_set(parts[7], "sync", FALSE, "max-buffers", 2, "enable-last-sample", FALSE, NULL);
    pad = gst_element_get_static_pad(parts[2], "src");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_picture, self, NULL);
    gst_object_unref(pad);
    return gst_element_set_state(self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
}

/* The whole group of pictures: the cursor then stands at the next key frame. */
static gboolean feed(CamLeadIn *self, CamCursor *cursor)
{
    gsize bytes = 0;

    for (int n = 0; n < MAX_UNITS && bytes < MAX_BYTES; n++) {
        GstBuffer *unit;

        if (n > 0 && cam_cursor_is_at_key(cursor)) {
            gst_app_src_end_of_stream(self->source);
            return TRUE;
        }
        unit = cam_cursor_next(cursor, FALSE);
        if (!unit) {
            gst_app_src_end_of_stream(self->source);
            return n > 0;
        }
        bytes += gst_buffer_get_size(unit);
        if (GST_BUFFER_PTS(unit) + MARGIN >= self->time)
            g_queue_push_tail(&self->times, g_memdup2(&GST_BUFFER_PTS(unit), sizeof(GstClockTime)));
        gst_app_src_push_buffer(self->source, unit);
    }
    return FALSE;
}

CamLeadIn *cam_lead_in_new(CamCursor *cursor, CamTimeline *timeline, GstClockTime time)
{
    CamLeadIn *self = g_new0(CamLeadIn, 1);

    self->time = time;
    g_queue_init(&self->times);
    if (build(self, timeline) && feed(self, cursor))
        return self;
    cam_lead_in_free(self);
    return NULL;
}

void cam_lead_in_free(CamLeadIn *self)
{
    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_object_unref(self->pipeline);
    g_queue_clear_full(&self->times, g_free);
    g_free(self);
}

/* Encoders have times of their own; there are as many pictures as went in, in their order. */
static GstBuffer *with_time(CamLeadIn *self, GstBuffer *buffer)
{
    g_autofree GstClockTime *time = g_queue_pop_head(&self->times);
    GstClockTime *next = g_queue_peek_head(&self->times);

    if (!time)
        return NULL;
    buffer = gst_buffer_copy(buffer);
    GST_BUFFER_PTS(buffer) = *time;
    GST_BUFFER_DTS(buffer) = *time;
    GST_BUFFER_DURATION(buffer) = next && *next > *time ? *next - *time : GST_CLOCK_TIME_NONE;
    return buffer;
}

GstBuffer *cam_lead_in_next(CamLeadIn *self)
{
    gint64 deadline = g_get_monotonic_time() + TIMEOUT_US;
    GstSample *sample = NULL;
    GstBuffer *buffer;

    while (!sample && g_get_monotonic_time() < deadline) {
        sample = gst_app_sink_try_pull_sample(self->sink, POLL);
        if (!sample && gst_app_sink_is_eos(self->sink))
            return NULL;
    }
    if (!sample)
        return NULL;
    buffer = with_time(self, gst_sample_get_buffer(sample));
    gst_sample_unref(sample);
    return buffer;
}
