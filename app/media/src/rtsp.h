/* The RTSP server. Main thread only. */
#pragma once

#include "stream.h"

typedef struct _CamRtsp CamRtsp;

typedef struct {
    const char *address;
    int port;
    int max_connections;
    const char *realm;
    gboolean basic;
} CamRtspSetup;

CamRtsp *cam_rtsp_new(void);
void cam_rtsp_free(CamRtsp *rtsp);

/* Returns the port, or -1 and *error_number (0: the address is none). Starting it again moves it;
 * clients that are connected stay. */
int cam_rtsp_start(CamRtsp *rtsp, const CamRtspSetup *setup, int *error_number);

/* Takes USERS, name → HA1 in hex. */
void cam_rtsp_set_users(CamRtsp *rtsp, GHashTable *users);

/* HUB is what clients get at PATH from now on. */
void cam_rtsp_mount(CamRtsp *rtsp, const char *path, CamHub *hub, int camera, const char *stream);
void cam_rtsp_unmount(CamRtsp *rtsp, const char *path);

/* Each returns how many connections it closed. */
int cam_rtsp_kick_user(CamRtsp *rtsp, const char *user);
int cam_rtsp_kick_client(CamRtsp *rtsp, gint64 id);
/* STREAM NULL: all of the camera's. */
int cam_rtsp_kick_stream(CamRtsp *rtsp, int camera, const char *stream);

JsonArray *cam_rtsp_stats(CamRtsp *rtsp);
