#pragma once

#include "camera.h"
#include "control.h"
#include "params_rtsp.h"
#include "recorder.h"
#include "rtsp.h"
#include "snapshot.h"

typedef struct _CamFileWork CamFileWork;

struct _CamService {
    GstClockTime started_at;
    GHashTable *cameras;   /* id → CamCamera, owned */
    GHashTable *recorders; /* id → CamRecorder, which free themselves */
    GHashTable *stops;     /* id → GPtrArray of CamRpcCall that wait for the end */
    CamSnapshots *snapshots;
    CamRtsp *rtsp;
    CamFileWork *files;
    int selected; /* -1: none */
    gboolean shutting_down;
};

#define CAM_MAX_CAMERAS 16
#define CAM_MAX_RECORDERS 32
#define CAM_MAX_ID G_MAXINT32

/* Answers CALL itself when there is no such camera. */
CamCamera *cam_service_camera(CamService *service, CamRpcCall *call, int id);
/* TRUE when CALL was answered with a fault in its parameters; clears FAULT. */
gboolean cam_service_refuse(CamRpcCall *call, CamParamFault *fault);
void cam_service_fail_io(CamRpcCall *call, int error_number, const char *what);

typedef void (*CamMethod)(CamService *service, CamRpcCall *call, JsonObject *params);

/* control_media.c: snapshots, statistics */
void cam_method_snapshot_take(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_stats_get(CamService *service, CamRpcCall *call, JsonObject *params);

/* control_recorder.c */
void cam_method_camera_set_buffer(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_recorder_pause(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_recorder_resume(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_recorder_start(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_recorder_stop(CamService *service, CamRpcCall *call, JsonObject *params);

/* control_files.c */
CamFileWork *cam_file_work_new(void);
void cam_file_work_free(CamFileWork *work);
void cam_method_media_export(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_media_cancel(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_media_thumbnail(CamService *service, CamRpcCall *call, JsonObject *params);

/* control_rtsp.c */
void cam_method_rtsp_start(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_rtsp_set_users(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_rtsp_set_lockout(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_rtsp_set_certificate(CamService *service, CamRpcCall *call, JsonObject *params);
void cam_method_rtsp_kick(CamService *service, CamRpcCall *call, JsonObject *params);

/* Recordings of streams that STREAMS is about to change go on with encoders of their own. */
void cam_service_detach_recorders(CamService *service, CamCamera *camera,
                                  const CamStreamConfig *streams, guint n_streams);
void cam_service_end_recorders(CamService *service, CamCamera *camera, CamRecorderEnd reason);
