#include "source_gst.h"
#include "log.h"

#include <gst/app/gstappsink.h>
#include <gst/video/video.h>
#include <math.h>

void cam_gst_source_fail(CamGstSource *self, const char *reason)
{
    if (g_atomic_int_compare_and_exchange(&self->failed, FALSE, TRUE))
        self->base.events->failed(self->base.owner, reason);
}

void cam_gst_source_fail_with(CamGstSource *self, GstMessage *message)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *detail = NULL;

    gst_message_parse_error(message, &error, &detail);
    cam_log(CAM_LOG_DEBUG, "source", "%s (%s)", error->message, detail ? detail : "");
    cam_gst_source_fail(self, error->message);
}

/* Size and rate as they really are, before the first frame. */
static void tell_start(CamGstSource *self, GstCaps *caps)
{
    GstStructure *structure = gst_caps_get_structure(caps, 0);
    int numerator = 0, denominator = 1;

    if (self->told)
        return;
    self->told = TRUE;
    gst_structure_get_int(structure, "width", &self->info.width);
    gst_structure_get_int(structure, "height", &self->info.height);
    gst_structure_get_fraction(structure, "framerate", &numerator, &denominator);
    self->info.fps = numerator > 0 && denominator > 0
                         ? MAX(1, (int)lround((double)numerator / denominator))
                         : self->fallback_fps;
    self->base.events->started(self->base.owner, &self->info);
}

/* A demuxer's end of the clip is where its last frame begins, so that the loop's first frame would
 * come at the same time. From there on all is later by a frame, also for the sink that waits. */
static GstClockTime make_room(CamGstSource *self, GstAppSink *sink, GstClockTime pts)
{
    GstClockTime interval = GST_SECOND / (guint64)self->info.fps;

    if (pts + GST_MSECOND < self->last_pts + interval) {
        self->shift += GST_CLOCK_DIFF(pts, self->last_pts + interval);
        pts = self->last_pts + interval;
        g_object_set(sink, "ts-offset", self->shift, NULL);
    }
    return pts;
}

/* The time of SAMPLE on the helper's time line. */
static GstClockTime timeline_pts(CamGstSource *self, GstAppSink *sink, GstSample *sample)
{
    GstBuffer *buffer = gst_sample_get_buffer(sample);
    GstSegment *segment = gst_sample_get_segment(sample);
    GstClockTime running =
        gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    GstClockTime pts;

    /* Some cameras send pictures without a time. */
    if (!GST_CLOCK_TIME_IS_VALID(running))
        return cam_now();
    pts = running + gst_element_get_base_time(self->pipeline) + (GstClockTime)self->shift;
    if (self->in_real_time && segment->base != self->loop_base) {
        self->loop_base = segment->base;
        pts = make_room(self, sink, pts);
    }
    self->last_pts = pts;
    return pts;
}

static GstFlowReturn on_raw(GstAppSink *sink, gpointer user_data)
{
    CamGstSource *self = user_data;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    GstBuffer *buffer;

    if (!sample)
        return GST_FLOW_EOS;
    tell_start(self, gst_sample_get_caps(sample));
    buffer = gst_sample_get_buffer(sample);
    buffer = self->copy ? gst_buffer_copy_deep(buffer) : gst_buffer_ref(buffer);
    self->base.events->raw(self->base.owner, buffer, gst_sample_get_caps(sample),
                           timeline_pts(self, sink, sample), 0);
    gst_sample_unref(sample);
    return GST_FLOW_OK;
}

static GstFlowReturn on_encoded(GstAppSink *sink, gpointer user_data)
{
    CamGstSource *self = user_data;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    GstBuffer *au;

    if (!sample)
        return GST_FLOW_EOS;
    tell_start(self, gst_sample_get_caps(sample));
    /* Small against raw frames: always copied, so that a device's buffers are free at once. */
    au = gst_buffer_copy_deep(gst_sample_get_buffer(sample));
    GST_BUFFER_DURATION(au) = GST_SECOND / (guint64)self->info.fps;
    self->base.events->encoded(self->base.owner, au, timeline_pts(self, sink, sample),
                               !GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT));
    gst_sample_unref(sample);
    return GST_FLOW_OK;
}

GstElement *cam_gst_source_sink(CamGstSource *self, gboolean native, gboolean in_real_time)
{
    GstAppSinkCallbacks callbacks = {.new_sample = native ? on_encoded : on_raw};
    GstElement *sink = gst_element_factory_make("appsink", NULL);
    GstCaps *caps = gst_caps_from_string(
        native ? "video/x-h264,stream-format=byte-stream,alignment=au" : "video/x-raw,format=I420");

    g_object_set(sink, "caps", caps, "sync", in_real_time, "max-buffers", 4u, "enable-last-sample",
                 FALSE, NULL);
    gst_caps_unref(caps);
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, self, NULL);
    self->in_real_time = in_real_time;
    g_strlcpy(self->info.format, native ? "H264" : "I420", sizeof(self->info.format));
    return sink;
}

GstElement *cam_gst_source_converter(gboolean native)
{
    GstElement *element = gst_element_factory_make(native ? "h264parse" : "videoconvert", NULL);

    if (native)
        g_object_set(element, "config-interval", -1, NULL);
    return element;
}
