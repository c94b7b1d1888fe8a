/* A new file whose content is synced as it grows, up to five times a second, so that a power cut
 * takes little of it. */
#pragma once

#include <glib.h>

typedef struct _CamSyncedFile CamSyncedFile;

/* The disk did not take what was written; once at most, on a thread of the file's or in
 * cam_synced_file_close(). The kernel says so once: nothing is synced after it. */
typedef void (*CamSyncFailed)(int error_number, gpointer user_data);

/* Creates PATH, which must not exist. On failure NULL and *error_number. */
CamSyncedFile *cam_synced_file_new(const char *path, CamSyncFailed failed, gpointer user_data,
                                   int *error_number);
int cam_synced_file_fd(CamSyncedFile *file);
gint64 cam_synced_file_size(CamSyncedFile *file);
/* Syncs file and directory, closes, frees; blocks. Returns the size. */
gint64 cam_synced_file_close(CamSyncedFile *file);
