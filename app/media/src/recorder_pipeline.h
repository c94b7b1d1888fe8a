/* Access units into a fragmented MP4 file that can be played whatever happens to the process. */
#pragma once

#include "types.h"

typedef struct _CamMp4 CamMp4;

/* The file cannot be written on; once at most, on one of the pipeline's threads. */
typedef void (*CamMp4Broken)(gboolean disk_full, const char *message, gpointer user_data);

/* Creates the file at PATH, which must not exist. On failure NULL and *error_number. */
CamMp4 *cam_mp4_new(const char *path, const CamStreamConfig *config, CamMp4Broken broken,
                    gpointer user_data, int *error_number);

/* Takes AU, whose pts starts at 0. FALSE: the disk does not keep up, AU is dropped. */
gboolean cam_mp4_push(CamMp4 *mp4, GstBuffer *au);
/* At least half of the queue is free. */
gboolean cam_mp4_has_room(CamMp4 *mp4);
gint64 cam_mp4_size(CamMp4 *mp4);

/* Writes the end of the file (waiting up to 2 s for it), syncs file and directory, frees all but
 * MP4 itself. Blocks: call it on a thread that may. Returns the file's size. */
gint64 cam_mp4_finish(CamMp4 *mp4);
void cam_mp4_free(CamMp4 *mp4);
