/* What a recording is asked to be, and which of it goes together. */
#pragma once

#include "container.h"
#include "params.h"

typedef enum { CAM_RECORD_VIDEO, CAM_RECORD_TIMELAPSE, CAM_RECORD_SLOW_MOTION } CamRecordingMode;

typedef struct {
    CamContainerType container;
    CamVideoCodec video;
    gboolean has_audio;
    CamAudioCodec audio;
    CamRecordingMode mode;
    gint64 duration_ms, part_max_bytes, part_max_ms; /* 0: no limit */
    gint64 pre_roll_ms;
    int queue_frames;   /* may wait for the disk; 0: as usual */
    gint64 interval_ms; /* timelapse */
    int playback_fps;   /* timelapse and slow motion */
} CamRecordingSpec;

typedef struct {
    int id, camera;
    const char *path, *stream;
    gboolean own; /* encode is given */
    CamStreamConfig encode;
    CamRecordingSpec spec;
} CamRecordingRequest;

/* The parameters of recorder.start. */
CamRecordingRequest cam_params_recording(JsonObject *params, CamParamFault *fault);

/* Sound as a recording may have it: null, or a name; ABSENT where it is not there. */
gboolean cam_params_recorded_audio(CamParams *params, const char *name, gboolean absent,
                                   CamAudioCodec *codec);

const char *cam_recording_mode_name(CamRecordingMode mode);
