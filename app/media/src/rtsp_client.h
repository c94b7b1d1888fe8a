/* The table of connected RTSP clients. Thread-safe: each client is served by a thread of its own.
 */
#pragma once

#include "rtsp_media.h"

#include <gst/rtsp-server/rtsp-server.h>
#include <json-glib/json-glib.h>

typedef struct _CamRtspClients CamRtspClients;

CamRtspClients *cam_rtsp_clients_new(void);
/* At the end of the process, when no client is left. */
void cam_rtsp_clients_free(CamRtspClients *clients);
gboolean cam_rtsp_clients_any(CamRtspClients *clients);

void cam_rtsp_clients_set_limit(CamRtspClients *clients, int max_connections);

/* A client connected; it takes itself out when it closes. */
void cam_rtsp_clients_add(CamRtspClients *clients, GstRTSPClient *client);

/* TRUE once there are so many connections, even of those to be refused, that no more are taken. */
gboolean cam_rtsp_clients_flooded(CamRtspClients *clients);

/* What the authentication needs of a client; all may be called for a client that is not known. */
gboolean cam_rtsp_client_refused(CamRtspClients *clients, GstRTSPClient *client);
void cam_rtsp_client_seen(CamRtspClients *clients, GstRTSPClient *client);
void cam_rtsp_client_authenticated(CamRtspClients *clients, GstRTSPClient *client, const char *user,
                                   const char *nonce);
/* Copies of what this connection has logged in with, or NULL. */
void cam_rtsp_client_login(CamRtspClients *clients, GstRTSPClient *client, char **user,
                           char **nonce);
/* That it gets, -1: none. */
int cam_rtsp_client_camera(CamRtspClients *clients, GstRTSPClient *client);

/* Has it a recording that it may go on with? */
gboolean cam_rtsp_client_plays_recording(CamRtspClients *clients, GstRTSPClient *client);

/* CLIENT gets MEDIA from now on; STREAM is NULL for a recording. */
void cam_rtsp_client_set_media(CamRtspClients *clients, GstRTSPClient *client, GstRTSPMedia *media,
                               int camera, const char *stream);

typedef struct {
    gint64 id;             /* 0: any */
    const char *user;      /* NULL: any */
    int camera;            /* -1: any */
    const char *stream;    /* NULL: any */
    GHashTable *not_among; /* users to spare: name → TRUE; NULL: nobody */
} CamRtspMatch;

/* Closes the matching connections that are not refused ones. */
int cam_rtsp_clients_close(CamRtspClients *clients, const CamRtspMatch *match);
/* Closes CLIENT soon, after what was sent to it had time to leave. */
void cam_rtsp_client_close_soon(CamRtspClients *clients, GstRTSPClient *client);

JsonArray *cam_rtsp_clients_stats(CamRtspClients *clients);
