/* What a GStreamer player shows after a seek: prints the stream time in ms and the frame number of
 * the first picture behind it. Usage: rtsp_seek URL USER PASSWORD SECONDS */
#include "picture.h"

#include <gst/app/gstappsink.h>
#include <stdlib.h>

#define TIMEOUT (10 * GST_SECOND)

static void on_pad(GstElement *source, GstPad *pad, gpointer depay)
{
    GstPad *sink = gst_element_get_static_pad(depay, "sink");

    if (!gst_pad_is_linked(sink))
        gst_pad_link(pad, sink);
    gst_object_unref(sink);
}

static GstElement *build(char **argv, GstElement **sink)
{
    GstElement *pipeline = gst_parse_launch(
        "rtspsrc name=source protocols=tcp rtph264depay name=depay ! h264parse ! avdec_h264 ! "
        "videoconvert ! video/x-raw,format=I420 ! appsink name=sink sync=false max-buffers=1",
        NULL);
    GstElement *source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
    GstElement *depay = gst_bin_get_by_name(GST_BIN(pipeline), "depay");

    *sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    g_object_set(source, "location", argv[1], "user-id", argv[2], "user-pw", argv[3], NULL);
    g_signal_connect(source, "pad-added", G_CALLBACK(on_pad), depay);
    gst_object_unref(source);
    gst_object_unref(depay);
    return pipeline;
}

static int show(GstSample *sample)
{
    const GstSegment *segment = gst_sample_get_segment(sample);
    GstBuffer *buffer = gst_sample_get_buffer(sample);
    guint64 time = gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    guint32 number = 0;
    GstVideoInfo info;
    GstVideoFrame frame;
    gboolean read;

    gst_video_info_from_caps(&info, gst_sample_get_caps(sample));
    gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ);
    read = cam_barcode_read(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0),
                            GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0), GST_VIDEO_FRAME_WIDTH(&frame),
                            GST_VIDEO_FRAME_HEIGHT(&frame), &number);
    gst_video_frame_unmap(&frame);
    g_print("%" G_GUINT64_FORMAT " %u\n", time / GST_MSECOND, number);
    return read ? 0 : 1;
}

int main(int argc, char **argv)
{
    GstElement *pipeline, *sink;
    GstSample *sample;
    int status = 1;

    gst_init(&argc, &argv);
    if (argc != 5)
        return 2;
    pipeline = build(argv, &sink);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    sample = gst_app_sink_try_pull_sample(GST_APP_SINK(sink), TIMEOUT);
    g_clear_pointer(&sample, gst_sample_unref);
    if (gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH,
                                (gint64)(g_ascii_strtod(argv[4], NULL) * GST_SECOND)))
        sample = gst_app_sink_try_pull_sample(GST_APP_SINK(sink), TIMEOUT);
    if (sample)
        status = show(sample);
    g_clear_pointer(&sample, gst_sample_unref);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(sink);
    gst_object_unref(pipeline);
    return status;
}
