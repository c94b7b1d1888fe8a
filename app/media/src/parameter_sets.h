/* Finds the H.264 parameter sets in an access unit. */
#pragma once

#include <gst/gst.h>

/* The SPS and PPS before AU's first slice, as one run of bytes; NULL when there are none. */
GBytes *cam_parameter_sets(GstBuffer *au);
