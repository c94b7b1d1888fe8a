/* What one RTSP client watches: a hub's access units, and the camera's sound, through payloaders of
 * the client's own. */
#pragma once

#include "audio.h"
#include "stream.h"

#include <gst/rtsp-server/rtsp-server.h>

/* Called on the client's thread when a client begins to get MEDIA; STREAM is NULL for a recording.
 */
typedef void (*CamRtspMediaCreated)(GstRTSPMedia *media, int camera, const char *stream,
                                    gpointer user_data);

typedef struct {
    CamHub *hub;     /* borrowed */
    CamAudio *audio; /* borrowed; NULL: no sound */
    int camera;
    const char *stream;
    CamRtspMediaCreated created;
    gpointer user_data;
} CamRtspFactorySetup;

GstRTSPMediaFactory *cam_rtsp_factory_new(const CamRtspFactorySetup *setup);
/* -1: its medias are of no camera, or of several. */
int cam_rtsp_factory_camera(GstRTSPMediaFactory *factory);

/* "?tcp" or "?udp" in the address of the request limits what is allowed for MEDIA. */
void cam_rtsp_media_allow_protocols(GstRTSPMedia *media, const GstRTSPContext *ctx);

/* PLAY and PAUSE of the media's one client. */
void cam_rtsp_media_set_playing(GstRTSPMedia *media, gboolean playing);
guint64 cam_rtsp_media_dropped(GstRTSPMedia *media);
/* For how long the client has taken nothing though there was something; ns. */
GstClockTime cam_rtsp_media_stuck_for(GstRTSPMedia *media);
