/* A still of a recorded file. */
#pragma once

#include <glib.h>

typedef struct {
    GBytes *jpeg;
    int width, height;
    gint64 position_ms; /* of the picture */
} CamThumbnail;

/* Decodes the key frame at or before POSITION_MS; at most WIDTH wide. Takes up to five seconds, or
 * until *CANCEL (atomic). FALSE: *MESSAGE (free it) says why. */
gboolean cam_thumbnail_make(const char *path, gint64 position_ms, int width, int quality,
                            const gint *cancel, CamThumbnail *thumbnail, char **message);
