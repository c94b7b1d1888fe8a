/* An RTSP client that may seek in recordings and choose their speed. */
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

GType cam_rtsp_client_get_type(void);
