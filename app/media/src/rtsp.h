/* The RTSP server. Main thread only. */
#pragma once

#include "audio.h"
#include "rtsp_access.h"
#include "stream.h"

#include <gio/gio.h>

typedef struct _CamRtsp CamRtsp;

typedef struct {
    const char *address;
    int port, tls_port; /* tls_port -1: none */
    int max_connections;
    const char *realm;
    CamBasic basic;
    GTlsCertificate *certificate; /* NULL: as it was; borrowed */
} CamRtspSetup;

typedef struct {
    int port, tls_port; /* tls_port -1: none */
} CamRtspPorts;

CamRtsp *cam_rtsp_new(void);
void cam_rtsp_free(CamRtsp *rtsp);

/* FALSE: nothing has changed, *error_number tells why. Starting it again moves it; clients that are
 * connected stay. */
gboolean cam_rtsp_start(CamRtsp *rtsp, const CamRtspSetup *setup, CamRtspPorts *ports,
                        int *error_number);

/* For connections from now on. */
void cam_rtsp_set_certificate(CamRtsp *rtsp, GTlsCertificate *certificate);

/* Takes USERS, name → CamRtspUser. */
void cam_rtsp_set_users(CamRtsp *rtsp, GHashTable *users);
/* Takes both: names (a set), and GInetAddressMasks. */
void cam_rtsp_set_lockout(CamRtsp *rtsp, GHashTable *users, GPtrArray *addresses);

/* HUB and, unless NULL, AUDIO are what clients get at PATH from now on. */
void cam_rtsp_mount(CamRtsp *rtsp, const char *path, CamHub *hub, CamAudio *audio, int camera,
                    const char *stream);
void cam_rtsp_unmount(CamRtsp *rtsp, const char *path);

/* Each returns how many connections it closed. */
int cam_rtsp_kick_user(CamRtsp *rtsp, const char *user);
int cam_rtsp_kick_client(CamRtsp *rtsp, gint64 id);
/* STREAM NULL: all of the camera's. */
int cam_rtsp_kick_stream(CamRtsp *rtsp, int camera, const char *stream);

JsonArray *cam_rtsp_stats(CamRtsp *rtsp);
