#pragma once

#include <glib.h>

typedef enum { CAM_LOG_ERROR, CAM_LOG_WARN, CAM_LOG_INFO, CAM_LOG_DEBUG } CamLogLevel;

/* Sets the most verbose level that is written; FALSE if NAME is no level. */
gboolean cam_log_set_level(const char *name);

/* Writes one JSON line to standard error. Callable from any thread. Never pass a secret. */
void cam_log(CamLogLevel level, const char *component, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Routes what GLib and its users log through cam_log(). */
void cam_log_capture_glib(void);
