/* JPEG stills of a camera's newest frame. Main thread only; the encoding is not. */
#pragma once

#include "camera.h"

typedef struct _CamSnapshots CamSnapshots;

typedef enum {
    CAM_SNAPSHOT_OK,
    CAM_SNAPSHOT_NO_SIGNAL,
    CAM_SNAPSHOT_BUSY,
    CAM_SNAPSHOT_FAILED
} CamSnapshotStatus;

typedef struct {
    CamSnapshotStatus status;
    GBytes *jpeg; /* borrowed; the rest is set with it */
    int width, height;
    guint64 frame;
    gint64 timestamp_ms;
    gboolean cached;
} CamSnapshotResult;

typedef void (*CamSnapshotDone)(const CamSnapshotResult *result, gpointer user_data);

CamSnapshots *cam_snapshots_new(void);
/* Requests under way are answered as failed. */
void cam_snapshots_free(CamSnapshots *snapshots);

/* DONE is called exactly once, possibly before this returns. */
void cam_snapshots_take(CamSnapshots *snapshots, CamCamera *camera, int quality,
                        CamSnapshotDone done, gpointer user_data);
void cam_snapshots_forget_camera(CamSnapshots *snapshots, int camera);

JsonObject *cam_snapshots_stats(CamSnapshots *snapshots);
