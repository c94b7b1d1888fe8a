/* Asks every request of the RTSP server for its login: connection limit, credentials, cameras. */
#pragma once

#include "rtsp_access.h"
#include "rtsp_client.h"

typedef struct _CamRtspAuth CamRtspAuth;

typedef struct {
    /* Borrowed, and outlive it. */
    CamRtspClients *clients;
    CamAccess *access;
    GstRTSPMountPoints *mounts;
    gboolean tls; /* of the connections that it is asked for */
} CamRtspAuthSetup;

CamRtspAuth *cam_rtsp_auth_new(const CamRtspAuthSetup *setup);
