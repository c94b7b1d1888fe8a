/* The composite parameters of the RTSP methods. */
#pragma once

#include "params.h"
#include "rtsp_access.h"

#include <gio/gio.h>

/* name → CamRtspUser; never NULL. */
GHashTable *cam_params_rtsp_users(CamParams *params, const char *name, guint max);
/* A set of strings; never NULL. */
GHashTable *cam_params_names(CamParams *params, const char *name, guint max);
/* Of GInetAddressMask; never NULL. */
GPtrArray *cam_params_addresses(CamParams *params, const char *name, guint max);
