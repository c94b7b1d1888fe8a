/* Strict reading of a request's parameters: every field known, typed and in its range. The first
 * fault is kept and names its field; later reads return harmless values. */
#pragma once

#include "types.h"

typedef struct {
    char *field; /* NULL while all is well */
    char *message;
} CamParamFault;

typedef struct {
    JsonObject *object;
    const char *prefix; /* "" or "mode." */
    CamParamFault *fault;
} CamParams;

/* NAMES is NULL-terminated; a member that is not in it is a fault. OBJECT may be NULL (empty). */
CamParams cam_params_open(JsonObject *object, const char *prefix, const char *const *names,
                          CamParamFault *fault);
void cam_params_fault(CamParams *params, const char *name, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
void cam_param_fault_clear(CamParamFault *fault);

gboolean cam_params_has(CamParams *params, const char *name);
gint64 cam_params_int(CamParams *params, const char *name, gint64 min, gint64 max);
gint64 cam_params_int_or(CamParams *params, const char *name, gint64 min, gint64 max,
                         gint64 fallback);
/* Present and not null. */
gboolean cam_params_given(CamParams *params, const char *name);
gboolean cam_params_bool(CamParams *params, const char *name);
/* Never NULL; "" after a fault. 1 … MAX_BYTES long. */
const char *cam_params_string(CamParams *params, const char *name, gsize max_bytes);
JsonObject *cam_params_object(CamParams *params, const char *name);
JsonArray *cam_params_array(CamParams *params, const char *name, guint min, guint max);

/* A string that begins with a slash. */
const char *cam_params_path(CamParams *params, const char *name);

/* The protocol's composite values. */
CamSourceSpec cam_params_source(CamParams *params, const char *name);
/* Null or absent: none. */
CamAudioSpec cam_params_audio(CamParams *params, const char *name);
CamMode cam_params_mode(CamParams *params, const char *name);
CamControls cam_params_controls(CamParams *params, const char *name);
guint cam_params_streams(CamParams *params, const char *name,
                         CamStreamConfig streams[CAM_MAX_STREAMS]);
/* "encode" of a recorder: a stream without name and gop. */
CamStreamConfig cam_params_encode(CamParams *params, const char *name);
