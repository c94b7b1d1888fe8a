/* Which recording an RTSP client plays: asked of the server at its first request for one, and kept
 * while the client has it. Called on the client's thread. */
#pragma once

#include "timeline.h"

#include <gst/rtsp-server/rtsp-server.h>

#define CAM_RECORDING_PATH "/recording"

typedef struct {
    char *wanted; /* the id in the address; NULL: the newest */
    int camera;
    CamTimeline *timeline;
} CamRecording;

/* Is URL that of a recording, or of a track of one? */
gboolean cam_recording_is_meant(const GstRTSPUrl *url);

/* What CLIENT has, borrowed; NULL: nothing. */
CamRecording *cam_recording_of(GstRTSPClient *client);

/* Finds out what URL means to USER, and lets CLIENT have it. */
GstRTSPStatusCode cam_recording_resolve(GstRTSPClient *client, const GstRTSPUrl *url,
                                        const char *user);

/* Is it the one that CLIENT has? An address without an id is that of any. */
gboolean cam_recording_is_same(GstRTSPClient *client, const GstRTSPUrl *url);
