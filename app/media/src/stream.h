/* A stream hub: encodes a camera's frames once, while somebody wants them, and hands every access
 * unit to all its consumers. Thread-safe; reference counted, because RTSP clients and recordings
 * outlive a reconfigured or removed camera for a moment. */
#pragma once

#include "types.h"

typedef struct _CamHub CamHub;

typedef struct {
    /* An access unit with pts = dts on the time line; AU is taken. The first is a key frame. FALSE:
     * no room; the consumer then gets nothing until ready() and, after that, a key frame. Runs
     * under the hub's lock on its thread: must not block nor call the hub. */
    gboolean (*deliver)(GstBuffer *au, gpointer user_data);
    /* There is room again. */
    gboolean (*ready)(gpointer user_data);
    gpointer user_data;
    /* May be NULL. Asked after each unit, as deliver(): TRUE to get a key frame as soon as one can
     * be made. */
    gboolean (*wants_key)(gpointer user_data);
    /* What is kept (cam_hub_keep()) from the first key frame at PAST on comes first, during
     * cam_hub_attach(); 0: nothing. */
    GstClockTime past;
} CamHubConsumer;

/* DEMAND tells the owner (under the hub's lock, on any thread) that the first consumer came. */
CamHub *cam_hub_new(const CamStreamConfig *config, void (*demand)(gpointer), gpointer demand_data);
CamHub *cam_hub_ref(CamHub *hub);
void cam_hub_unref(CamHub *hub);

CamStreamConfig cam_hub_config(CamHub *hub);
/* Consumers stay and get a key frame with the new parameter sets. */
void cam_hub_set_config(CamHub *hub, const CamStreamConfig *config);
/* The frame rate of what is pushed; faster than the stream's, frames are left out evenly. */
void cam_hub_set_source_fps(CamHub *hub, int fps);
/* TRUE: access units come from the camera; raw frames are ignored and nothing is encoded here. */
void cam_hub_set_passthrough(CamHub *hub, gboolean passthrough);
gboolean cam_hub_is_passthrough(CamHub *hub);
/* The camera is gone: stop encoding, forget the owner. */
void cam_hub_close(CamHub *hub);

guint cam_hub_attach(CamHub *hub, const CamHubConsumer *consumer);
/* After it returns the consumer is not called any more. */
void cam_hub_detach(CamHub *hub, guint id);
guint64 cam_hub_consumer_dropped(CamHub *hub, guint id);
guint cam_hub_consumers(CamHub *hub);

/* Keeps BYTES of the past and encodes for that; 0 ends it. */
void cam_hub_keep(CamHub *hub, gsize bytes);
gboolean cam_hub_keeps(CamHub *hub);
/* How much there is of it. */
gsize cam_hub_kept(CamHub *hub);
/* It has consumers or keeps its past. */
gboolean cam_hub_is_wanted(CamHub *hub);

/* Counts those that will give a hub without a name back: it goes with the last. Main thread. */
void cam_hub_hold(CamHub *hub);
/* TRUE: that was the last. */
gboolean cam_hub_release(CamHub *hub);

/* Both borrow the buffer. */
void cam_hub_push_raw(CamHub *hub, GstBuffer *buffer, GstCaps *caps, GstClockTime pts);
void cam_hub_push_encoded(CamHub *hub, GstBuffer *au);

JsonObject *cam_hub_stats(CamHub *hub);
