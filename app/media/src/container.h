/* A file of a recording that is being written: access units in, MP4 or AVI out, whatever happens to
 * the process. Units are queued; only finish() blocks. */
#pragma once

#include "types.h"

typedef enum { CAM_CONTAINER_MP4, CAM_CONTAINER_AVI } CamContainerType;

typedef struct {
    CamContainerType type;
    CamStreamConfig video; /* fps is the file's */
    int queue_frames;      /* may wait for the disk, where that is more than usual; 0: as usual */
    gboolean frugal;       /* pictures come rarely: each reaches the kernel for itself */
    gboolean has_audio;
    CamAudioCodec audio;
    GstCaps *audio_caps;
} CamContainerFormat;

/* The file cannot be written on; once at most, on a thread of the container's. */
typedef void (*CamContainerBroken)(gboolean disk_full, const char *message, gpointer user_data);

typedef struct _CamContainer CamContainer;

/* Creates the file at PATH, which must not exist. On failure NULL and *error_number. */
CamContainer *cam_container_new(const char *path, const CamContainerFormat *format,
                                CamContainerBroken broken, gpointer user_data, int *error_number);

/* How much may wait for the disk: some seconds, and what the format asks for beyond that. */
gsize cam_container_queue_bytes(const CamContainerFormat *format);
/* Both take UNIT, with pts from 0 on and duration. FALSE: the disk does not keep up, it is dropped.
 */
gboolean cam_container_push_video(CamContainer *container, GstBuffer *unit);
gboolean cam_container_push_audio(CamContainer *container, GstBuffer *unit);
/* At least half of the queue is free. */
gboolean cam_container_has_room(CamContainer *container);
/* Lets that much more wait: a pre-roll comes all at once. */
void cam_container_allow(CamContainer *container, gsize bytes);
gint64 cam_container_size(CamContainer *container);

/* Writes the end of the file (waiting at most TIMEOUT_US), syncs file and directory, frees. Blocks:
 * call it on a thread that may. Returns the file's size. */
gint64 cam_container_finish(CamContainer *container, gint64 timeout_us);
