/* The protocol's methods on the helper's objects. Main thread only. */
#pragma once

#include "rpc.h"

typedef struct _CamService CamService;

CamService *cam_service_new(void);
/* Everything is stopped; recordings must have ended (cam_service_shut_down()). */
void cam_service_free(CamService *service);

/* A CamRpcHandler; USER_DATA is the CamService. */
void cam_service_handle(CamRpcCall *call, const char *method, JsonObject *params,
                        gpointer user_data);

/* Ends all recordings, in parallel, and takes no further requests. */
void cam_service_shut_down(CamService *service);
/* Recordings that have not ended yet. */
guint cam_service_recorders(CamService *service);
