/* One picture of a real H.264 encoder. */
#pragma once

#include <gst/app/gstappsink.h>

#define KEY_WIDTH 160
#define KEY_HEIGHT 120

/* A byte-stream access unit with its parameter sets. */
static inline GstBuffer *key_frame_new(void)
{
    g_autoptr(GError) error = NULL;
    GstElement *pipeline = gst_parse_launch(
        "videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=160,height=120 ! x264enc "
        "! video/x-h264,stream-format=byte-stream,alignment=au ! appsink name=sink sync=false",
        &error);
    GstElement *sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    GstSample *sample;
    GstBuffer *buffer;

    g_assert_no_error(error);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    sample = gst_app_sink_pull_sample(GST_APP_SINK(sink));
    buffer = gst_buffer_copy_deep(gst_sample_get_buffer(sample));
    gst_sample_unref(sample);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(sink);
    gst_object_unref(pipeline);
    return buffer;
}
