/* Questions to the server. Any thread but the main one may ask and wait: the main loop reads the
 * answer. */
#pragma once

#include "rpc_message.h"

/* At most so many wait at once, and none longer than that. */
#define CAM_ASK_MAX 32
#define CAM_ASK_TIMEOUT_MS 3000

typedef void (*CamAskSender)(const char *id, const char *method, JsonObject *params,
                             gpointer user_data);

/* What sends them; called on the main thread. NULL: nobody is there, and who waits hears so. */
void cam_asks_set_sender(CamAskSender sender, gpointer user_data);

/* Takes PARAMS. The result, or NULL and why: what the server said, CAM_RPC_BUSY when too many wait
 * or nothing came in time, CAM_RPC_INTERNAL when nobody can be asked. */
JsonObject *cam_ask(const char *method, JsonObject *params, int *code);

/* ID's answer came: RESULT (borrowed), or NULL and CODE. FALSE when nobody waits for it (any more).
 */
gboolean cam_asks_answered(const char *id, JsonObject *result, int code);
