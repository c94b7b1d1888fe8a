/* A camera: its source, kept alive, and the streams that are made of it. The functions here are for
 * the main thread; the frames take their own way (camera_feed.c). */
#pragma once

#include "audio.h"
#include "ring.h"
#include "stream.h"

#include <gst/video/video.h>

typedef struct _CamCamera CamCamera;

typedef struct {
    int id;
    CamSourceSpec spec;
    CamMode mode;
    CamControls controls;
    CamAudioSpec audio;
    CamStreamConfig streams[CAM_MAX_STREAMS];
    guint n_streams;
} CamCameraSetup;

CamCamera *cam_camera_new(const CamCameraSetup *setup);
CamCamera *cam_camera_ref(CamCamera *camera);
void cam_camera_unref(CamCamera *camera);

/* Stops everything; what still holds a reference sees a camera without signal. */
void cam_camera_close(CamCamera *camera);

int cam_camera_id(CamCamera *camera);
gboolean cam_camera_is_streaming(CamCamera *camera);

/* Each NULL where it stays as it is. */
void cam_camera_configure(CamCamera *camera, const CamMode *mode, const CamStreamConfig *streams,
                          guint n_streams);
/* Values of -1 stay. */
void cam_camera_set_controls(CamCamera *camera, const CamControls *controls);
void cam_camera_restart(CamCamera *camera);

/* The named stream's hub with a reference, or NULL. */
CamHub *cam_camera_hub(CamCamera *camera, const char *name);
/* A hub that encodes like CONFIG, shared where there is one already; give it back. ALONE: not with
 * a named stream, which may change. */
CamHub *cam_camera_private_hub(CamCamera *camera, const CamStreamConfig *config, gboolean alone);
void cam_camera_release_hub(CamCamera *camera, CamHub *hub);

/* Keeps BYTES of HUB's past and, unless CODEC is NULL, of the sound while the camera has one; 0
 * ends it. */
void cam_camera_keep(CamCamera *camera, CamHub *hub, gsize bytes, const CamAudioCodec *codec);
/* The sound that is kept, from FROM on; nothing where it is of another codec. */
void cam_camera_replay_sound(CamCamera *camera, CamAudioCodec codec, GstClockTime from,
                             CamRingFunc func, gpointer user_data);

/* The camera's sound with a reference; NULL: it has none. */
CamAudio *cam_camera_audio(CamCamera *camera);
/* Who listens to the old sound hears no more; what is kept begins anew with this one. */
void cam_camera_set_audio(CamCamera *camera, const CamAudioSpec *spec);

typedef struct {
    GstBuffer *buffer; /* I420 */
    GstVideoInfo info;
    GstClockTime pts;
    guint64 number;
} CamFrame;

typedef enum { CAM_FRAME_READY, CAM_FRAME_SOON, CAM_FRAME_NONE } CamFrameAnswer;

/* SOON: the camera has a picture, but it must be decoded first; ask again shortly. */
CamFrameAnswer cam_camera_take_frame(CamCamera *camera, CamFrame *frame);
void cam_frame_clear(CamFrame *frame);

JsonObject *cam_camera_stats(CamCamera *camera);
/* {"brightness": "device"|"software", …} for the controls in WANTED (NULL: all). */
JsonObject *cam_camera_controls_report(CamCamera *camera, const CamControls *wanted);
