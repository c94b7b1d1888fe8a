/* Streams of a media that its client has not set up. */
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

/* Before MEDIA plays: nothing takes what is sent on such a stream, which would be an error of the
 * whole media, so it is dropped until the stream is set up. */
void cam_rtsp_drop_unused(GstRTSPMedia *media);
