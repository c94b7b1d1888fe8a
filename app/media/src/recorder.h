/* A recording of one stream. Main thread only. */
#pragma once

#include "camera.h"

typedef struct _CamRecorder CamRecorder;

typedef enum {
    CAM_END_STOPPED,
    CAM_END_DURATION,
    CAM_END_DISK_FULL,
    CAM_END_ERROR,
    CAM_END_CAMERA_REMOVED,
    CAM_END_SHUTDOWN,
} CamRecorderEnd;

/* The recorder has ended, its file is closed, recorder.ended is on its way; then it frees itself.
 */
typedef void (*CamRecorderEnded)(CamRecorder *recorder, gpointer user_data);

typedef struct {
    int id;
    CamCamera *camera;
    const char *path;
    CamHub *hub;        /* reference taken, also on failure */
    gint64 duration_ms; /* 0: until stopped */
    CamRecorderEnded ended;
    gpointer user_data;
} CamRecorderSetup;

CamRecorder *cam_recorder_start(const CamRecorderSetup *setup, int *error_number);

/* Ends it, if that has not begun; ended() follows. */
void cam_recorder_end(CamRecorder *recorder, CamRecorderEnd reason);

int cam_recorder_id(CamRecorder *recorder);
CamCamera *cam_recorder_camera(CamRecorder *recorder);
CamHub *cam_recorder_hub(CamRecorder *recorder);
CamStreamConfig cam_recorder_config(CamRecorder *recorder);
/* Goes on with another hub of the same encoding; takes the reference. */
void cam_recorder_move(CamRecorder *recorder, CamHub *hub);

/* Adds duration_ms, size_bytes and frames. */
void cam_recorder_result(CamRecorder *recorder, JsonObject *object);
JsonObject *cam_recorder_stats(CamRecorder *recorder);
