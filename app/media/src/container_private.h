/* What the two kinds of files have in common. */
#pragma once

#include "container.h"
#include "synced_file.h"

typedef struct {
    void (*begin)(CamContainer *container, const char *path);
    /* Both take UNIT. */
    gboolean (*push_video)(CamContainer *container, GstBuffer *unit);
    gboolean (*push_audio)(CamContainer *container, GstBuffer *unit);
    gsize (*queued)(CamContainer *container);
    /* Nothing more is pushed: cam_container_ended() or cam_container_fail() follows. */
    void (*end)(CamContainer *container);
    /* Waits for its threads. */
    void (*stop)(CamContainer *container);
    void (*free)(CamContainer *container);
} CamContainerClass;

struct _CamContainer {
    const CamContainerClass *klass;
    CamContainerFormat format;
    CamSyncedFile *file;
    CamContainerBroken broken;
    gpointer user_data;
    gsize queue_bytes, extra_bytes;
    GMutex lock;
    GCond changed;
    gboolean ended, failed;
};

CamContainer *cam_mp4_new(void);
CamContainer *cam_avi_new(void);

/* Tells the owner, the first time. */
void cam_container_fail(CamContainer *container, gboolean disk_full, const char *message);
/* The end of the file is written. */
void cam_container_ended(CamContainer *container);
