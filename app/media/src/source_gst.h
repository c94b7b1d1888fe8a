/* What the sources that are GStreamer pipelines have in common: the end of the pipeline. */
#pragma once

#include "source.h"

typedef struct {
    CamSource base;
    GstElement *pipeline;
    CamSourceInfo info; /* size and rate are completed from the first frame's caps */
    int fallback_fps;
    gboolean in_real_time;  /* the sink waits for each frame's time */
    GstClockTimeDiff shift; /* what loops have added to the time; see source_gst.c */
    GstClockTime last_pts, loop_base;
    gboolean copy; /* frames are the device's own buffers and must not be kept */
    gboolean told;
    gint failed; /* atomic */
} CamGstSource;

/* An appsink whose frames go to the owner: access units when NATIVE, else I420. */
GstElement *cam_gst_source_sink(CamGstSource *self, gboolean native, gboolean in_real_time);
/* Tells the owner once. */
void cam_gst_source_fail(CamGstSource *self, const char *reason);
/* Tells the owner that MESSAGE, an error, ended it. */
void cam_gst_source_fail_with(CamGstSource *self, GstMessage *message);
/* videoconvert, or h264parse for native H.264, ready to be added in front of the sink. */
GstElement *cam_gst_source_converter(gboolean native);
