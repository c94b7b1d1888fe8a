/* A recording of one stream, or of a camera's single pictures. Main thread only. */
#pragma once

#include "camera.h"
#include "recording_spec.h"

typedef struct _CamRecorder CamRecorder;

typedef enum {
    CAM_END_STOPPED,
    CAM_END_DURATION,
    CAM_END_DISK_FULL,
    CAM_END_ERROR,
    CAM_END_CAMERA_REMOVED,
    CAM_END_SHUTDOWN,
} CamRecorderEnd;

/* The recorder has ended, its files are closed, recorder.ended is on its way; then it frees itself.
 */
typedef void (*CamRecorderEnded)(CamRecorder *recorder, gpointer user_data);

typedef struct {
    int id;
    CamCamera *camera;
    const char *path;
    CamRecordingSpec spec;
    CamHub *hub;            /* reference taken, also on failure; NULL for a timelapse */
    CamStreamConfig config; /* of a timelapse: its encoder */
    CamAudio *audio;        /* where spec has it; borrowed */
    CamRecorderEnded ended;
    gpointer user_data;
} CamRecorderSetup;

/* NULL: the file cannot be made. */
CamRecorder *cam_recorder_start(const CamRecorderSetup *setup, int *error_number);

/* Ends it, if that has not begun; ended() follows. */
void cam_recorder_end(CamRecorder *recorder, CamRecorderEnd reason);

void cam_recorder_pause(CamRecorder *recorder);
void cam_recorder_resume(CamRecorder *recorder);

int cam_recorder_id(CamRecorder *recorder);
CamCamera *cam_recorder_camera(CamRecorder *recorder);
/* NULL for a timelapse. */
CamHub *cam_recorder_hub(CamRecorder *recorder);
CamStreamConfig cam_recorder_config(CamRecorder *recorder);
/* Goes on with another hub of the same encoding; takes the reference. */
void cam_recorder_move(CamRecorder *recorder, CamHub *hub);

/* How long the files play. */
gint64 cam_recorder_duration_ms(CamRecorder *recorder);
gint64 cam_recorder_pre_roll_ms(CamRecorder *recorder);
int cam_recorder_fps(CamRecorder *recorder);
/* Adds duration_ms, size_bytes and frames. */
void cam_recorder_result(CamRecorder *recorder, JsonObject *object);
JsonObject *cam_recorder_stats(CamRecorder *recorder);
