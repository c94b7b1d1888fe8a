/* Framing and JSON-RPC 2.0 as pure functions: bytes in, message or error out. */
#pragma once

#include <json-glib/json-glib.h>

#define CAM_RPC_HEADER_SIZE 8
#define CAM_RPC_MAX_JSON (256 * 1024)
#define CAM_RPC_MAX_BINARY (32 * 1024 * 1024)
#define CAM_RPC_MAX_DEPTH 32

typedef enum {
    CAM_RPC_PARSE_ERROR = -32700,
    CAM_RPC_INVALID_REQUEST = -32600,
    CAM_RPC_METHOD_NOT_FOUND = -32601,
    CAM_RPC_INVALID_PARAMS = -32602,
    CAM_RPC_INTERNAL = -32603,
    CAM_RPC_NOT_FOUND = -32001,
    CAM_RPC_EXISTS = -32002,
    CAM_RPC_NO_SIGNAL = -32003,
    CAM_RPC_UNSUPPORTED = -32004,
    CAM_RPC_IO = -32005,
    CAM_RPC_BUSY = -32006,
} CamRpcCode;

typedef enum { CAM_FRAME_INCOMPLETE, CAM_FRAME_COMPLETE, CAM_FRAME_BAD } CamFrameState;

/* Looks for one whole frame from the peer at the start of DATA. COMPLETE: its JSON is *json_length
 * bytes after the header. BAD: the lengths are out of range and nothing after can be trusted. */
CamFrameState cam_frame_scan(const guint8 *data, gsize length, gsize *json_length);

/* Frames TEXT followed by BINARY (may be NULL). */
GBytes *cam_frame_build(const char *text, gsize length, GBytes *binary);

typedef struct {
    JsonNode *root;
    JsonNode *id; /* points into root; NULL for a notification */
    const char *method;
    JsonObject *params; /* points into root; NULL when absent */
    /* It is no request but an answer, which is never answered itself. */
    gboolean is_answer;
    JsonObject *result; /* of a well-formed answer; NULL: it is an error with CODE */
    int code;
} CamRequest;

/* Returns 0 and fills REQUEST (clear it), or a CamRpcCode and a message; after an invalid request
 * REQUEST still holds the id where there was a usable one. An answer has no id when it is not
 * well-formed. */
int cam_request_parse(const char *text, gsize length, CamRequest *request, const char **message);
void cam_request_clear(CamRequest *request);

/* Serialises {"jsonrpc": "2.0", …} messages; RESULT, DATA and PARAMS are borrowed, ID may be NULL
 * (null in a response). */
char *cam_request_text(const char *id, const char *method, JsonObject *params, gsize *length);
char *cam_response_text(JsonNode *id, JsonObject *result, gsize *length);
char *cam_error_text(JsonNode *id, int code, const char *message, JsonObject *data, gsize *length);
char *cam_notification_text(const char *method, JsonObject *params, gsize *length);
