/* A new file whose content is synced twice a second, so that a power cut takes little of it. */
#pragma once

#include <glib.h>

typedef struct _CamSyncedFile CamSyncedFile;

/* Creates PATH, which must not exist. On failure NULL and *error_number. */
CamSyncedFile *cam_synced_file_new(const char *path, int *error_number);
int cam_synced_file_fd(CamSyncedFile *file);
gint64 cam_synced_file_size(CamSyncedFile *file);
/* Syncs file and directory, closes, frees; blocks. Returns the size. */
gint64 cam_synced_file_close(CamSyncedFile *file);
