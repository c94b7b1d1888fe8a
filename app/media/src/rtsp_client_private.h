#pragma once

#include "rtsp_client.h"

typedef struct {
    gint64 id;
    GstRTSPClient *client; /* weak: it is in the table until it closes */
    GMainContext *context; /* that serves it, once it has sent something */
    char *address, *user, *nonce;
    gboolean refused, authenticated, played;
    guint login_timer; /* 0: has fired */
    GSocket *socket;
    GSource *closing; /* closes it soon, or NULL */
    GstClockTime connected_at;
    GWeakRef media;
    int camera;
    char stream[CAM_NAME_MAX + 1];
    gboolean is_recording;       /* what it gets is no live stream */
    GstRTSPLowerTrans transport; /* 0: unknown */
} CamRtspEntry;

struct _CamRtspClients {
    GMutex lock;
    GHashTable *table; /* GstRTSPClient → Entry */
    gint64 next_id;
    int limit;
    guint stuck_timer;
};
