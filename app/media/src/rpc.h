/* One JSON-RPC peer on a stream socket. Main thread only. */
#pragma once

#include "rpc_message.h"

typedef struct _CamRpc CamRpc;
typedef struct _CamRpcCall CamRpcCall;

/* PARAMS may be NULL. The handler answers CALL exactly once, now or later. */
typedef void (*CamRpcHandler)(CamRpcCall *call, const char *method, JsonObject *params,
                              gpointer user_data);

/* The peer is gone, or sent what cannot be skipped. Called once. */
typedef void (*CamRpcClosed)(gpointer user_data);

/* Takes FD. */
CamRpc *cam_rpc_new(int fd, CamRpcHandler handler, CamRpcClosed closed, gpointer user_data);
void cam_rpc_free(CamRpc *rpc);

/* Takes PARAMS. */
void cam_rpc_notify(CamRpc *rpc, const char *method, JsonObject *params);

/* Asks the peer; PARAMS is borrowed. What comes back goes to cam_asks_answered(). */
void cam_rpc_ask(CamRpc *rpc, const char *id, const char *method, JsonObject *params);

/* Writes what is queued, waiting up to TIMEOUT_MS; for the last words before the exit. */
void cam_rpc_flush(CamRpc *rpc, int timeout_ms);

/* Each ends CALL. RESULT and DATA are taken; DATA and BINARY may be NULL. */
void cam_rpc_call_reply(CamRpcCall *call, JsonObject *result);
void cam_rpc_call_reply_binary(CamRpcCall *call, JsonObject *result, GBytes *binary);
void cam_rpc_call_fail(CamRpcCall *call, CamRpcCode code, const char *message, JsonObject *data);
