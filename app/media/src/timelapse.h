/* A camera's picture each interval, encoded for itself. Main thread, but for what is said. */
#pragma once

#include "camera.h"

typedef struct _CamTimelapse CamTimelapse;

typedef struct {
    CamCamera *camera;
    CamStreamConfig config; /* fps: of the pictures as they are shown */
    gint64 interval_ms;
    gint64 duration_ms; /* of captured time, without pauses; 0: none */
    /* A picture, 1/fps after the one before; AU is taken. On the encoder's thread. */
    gboolean (*deliver)(GstBuffer *au, gpointer user_data);
    /* On deliver()'s thread behind it: the next one is to be a key frame. */
    gboolean (*wants_key)(gpointer user_data);
    /* The duration is over; MESSAGE: it cannot go on. On any thread. */
    void (*ended)(const char *message, gpointer user_data);
    gpointer user_data;
} CamTimelapseSetup;

/* NULL: no encoder can be built. The first picture is taken at once. */
CamTimelapse *cam_timelapse_new(const CamTimelapseSetup *setup);
void cam_timelapse_pause(CamTimelapse *timelapse, gboolean paused);
/* No picture is taken any more. */
void cam_timelapse_stop(CamTimelapse *timelapse);
/* Waits for the pictures that are in the encoder, and frees. Any thread, after stop(). */
void cam_timelapse_free(CamTimelapse *timelapse);
/* Pictures that the camera did not have. */
guint64 cam_timelapse_missed(CamTimelapse *timelapse);
