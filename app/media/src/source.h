/* Where pictures come from. A source runs threads of its own and reports to its owner through
 * CamSourceEvents, from any of them, until cam_source_free() has returned. */
#pragma once

#include "types.h"

typedef struct _CamSource CamSource;

typedef struct {
    char format[8]; /* I420, YUY2, MJPG, H264 */
    int width, height, fps;
    gboolean hardware[CAM_N_CONTROLS]; /* the device adjusts it itself */
} CamSourceInfo;

typedef struct {
    /* Before the first frame; may come again when the mode changes by itself. */
    void (*started)(gpointer owner, const CamSourceInfo *info);
    /* An I420 frame; BUFFER is taken. NUMBER is the frame number burnt in, or 0. */
    void (*raw)(gpointer owner, GstBuffer *buffer, GstCaps *caps, GstClockTime pts, guint64 number);
    /* An H.264 access unit, byte-stream, parameter sets before each key frame; AU is taken. */
    void (*encoded)(gpointer owner, GstBuffer *au, GstClockTime pts, gboolean key);
    /* No more frames will come. */
    void (*failed)(gpointer owner, const char *reason);
} CamSourceEvents;

typedef struct {
    void (*free)(CamSource *source);
    void (*set_controls)(CamSource *source, const CamControls *controls); /* may be NULL */
} CamSourceClass;

struct _CamSource {
    const CamSourceClass *klass;
    const CamSourceEvents *events;
    gpointer owner;
};

typedef struct {
    const CamSourceSpec *spec;
    CamMode mode;
    CamControls controls;
    guint64 first_number; /* of the test picture's next frame */
    const CamSourceEvents *events;
    gpointer owner;
} CamSourceSetup;

/* Never NULL: what goes wrong is reported as failed(), possibly before this returns. */
CamSource *cam_source_open(const CamSourceSetup *setup);

/* Stops and frees; waits for the source's threads. Not from one of its callbacks. */
void cam_source_free(CamSource *source);

/* Only what info.hardware says the source does itself. Does not wait for the device; of values that
 * it has not come to, the newest count. */
void cam_source_set_controls(CamSource *source, const CamControls *controls);

CamSource *cam_source_test_new(const CamSourceSetup *setup);
CamSource *cam_source_no_signal_new(const CamSourceSetup *setup);
CamSource *cam_source_file_new(const CamSourceSetup *setup);
CamSource *cam_source_v4l2_new(const CamSourceSetup *setup);
