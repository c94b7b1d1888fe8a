/* Cuts ranges out of recorded files into one MP4, without encoding the picture anew. */
#pragma once

#include <glib.h>

typedef struct {
    char *path;
    gint64 start_ms, end_ms; /* end_ms -1: to the file's end */
} CamExportPart;

typedef struct {
    const CamExportPart *parts;
    guint n_parts;
    const char *path;
    /* 0 … 1, at most four times a second. */
    void (*progress)(gdouble fraction, gpointer user_data);
    gpointer user_data;
    const gint *cancel; /* atomic */
} CamExportSetup;

typedef enum {
    CAM_EXPORT_DONE,
    CAM_EXPORT_CANCELLED,
    CAM_EXPORT_UNSUPPORTED, /* the parts cannot become one MP4 */
    CAM_EXPORT_IO,
} CamExportOutcome;

typedef struct {
    CamExportOutcome outcome;
    gint64 duration_ms, size_bytes;
    int error_number; /* of IO */
    char *message;    /* unless it is done; free it */
} CamExportResult;

/* On a thread of its own: it may take minutes. Whatever the outcome but DONE, PATH is not there
 * afterwards (unless it was before). */
CamExportResult cam_export_run(const CamExportSetup *setup);
