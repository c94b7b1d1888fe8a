/* Who may ask the RTSP server for what: connection limit, Digest, Basic. */
#pragma once

#include "rtsp_client.h"

typedef struct _CamRtspAuth CamRtspAuth;

/* CLIENTS is borrowed and outlives it. */
CamRtspAuth *cam_rtsp_auth_new(CamRtspClients *clients);
void cam_rtsp_auth_configure(CamRtspAuth *auth, const char *realm, gboolean basic);
/* Takes USERS, name → HA1. Returns the names whose HA1 is as it was: name → name. */
GHashTable *cam_rtsp_auth_set_users(CamRtspAuth *auth, GHashTable *users);
