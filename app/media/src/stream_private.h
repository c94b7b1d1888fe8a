#pragma once

#include "encoder.h"
#include "gop_cache.h"
#include "ring.h"
#include "silence.h"
#include "stream.h"

typedef struct {
    guint id;
    CamHubConsumer calls;
    gboolean need_key;
    gboolean overflowed;
    guint64 dropped;
    GstClockTime last_pts; /* of the unit that it got last, 0: none */
} CamConsumer;

typedef struct {
    guint64 frames_encoded, frames_dropped, bytes, key_frames_forced;
    /* The running second and what the last whole one gave. */
    GstClockTime window_start;
    guint64 window_bytes;
    int bitrate_kbps, encode_time_us;
    gboolean measured;
} CamHubStats;

struct _CamHub {
    gatomicrefcount refs;
    /* Taken before LOCK by whoever builds the encoder, which takes tens of milliseconds, or ends
     * it; LOCK alone is only ever held for moments. */
    GMutex build_lock;         /* both below */
    guint ending;              /* encoders on their way out */
    GstClockTime ending_since; /* the newest of them */

    GMutex lock; /* all below */
    CamStreamConfig config;
    CamEncoder *encoder;
    gboolean encoder_gave; /* something, since it was begun */
    CamSilence silence;
    guint encoder_index; /* in cam_encoder_choice_all(config.codec); moves on when one breaks */
    guint failures;      /* of that kind */
    GstClockTime failed_at;
    gboolean closed, passthrough;
    GPtrArray *consumers;
    guint next_id;
    CamGopCache *gop;
    CamRing *ring; /* NULL: nothing is kept */
    guint holders; /* main thread only */
    void (*demand)(gpointer);
    gpointer demand_data;
    gboolean key_wanted;
    GstClockTime last_key;
    GstClockTime last_pts, last_au_pts, idle_since;
    int source_fps;
    GstClockTime slot_base;
    guint64 next_slot;
    CamHubStats stats;
};

/* stream_output.c; both with lock held. */
/* AU, newer than all before it, to all consumers. */
void cam_hub_deliver(CamHub *hub, GstBuffer *au);
/* Hands CONSUMER what is kept since the last key frame of the camera's own encoder. */
void cam_hub_replay(CamHub *hub, CamConsumer *consumer);
/* Hands a new CONSUMER the past that it wants. */
void cam_hub_replay_past(CamHub *hub, CamConsumer *consumer);
gboolean cam_hub_is_wanted_locked(CamHub *hub);

/* stream_encoder.c: builds the encoder when one is wanted, as soon as the one before it has ended.
 */
void cam_hub_begin_encoder(CamHub *hub);
/* With build_lock held; does not wait for it. */
void cam_hub_end_encoder(CamHub *hub);
/* A picture is about to be pushed; lock held. */
void cam_hub_watch_encoder(CamHub *hub);
/* stream.c: ends the encoder some time later, unless it is wanted again. */
void cam_hub_linger(CamHub *hub);
/* The encoder element that is used for this hub; lock held. */
const char *cam_hub_encoder_name(CamHub *hub);
