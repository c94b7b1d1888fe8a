#pragma once

#include "adjust.h"
#include "camera.h"
#include "camera_stall.h"
#include "decoder.h"
#include "gop_cache.h"
#include "picture_timeline.h"
#include "sound_ring.h"
#include "source.h"

typedef enum { CAM_STATE_STARTING, CAM_STATE_STREAMING, CAM_STATE_NO_SIGNAL } CamState;

/* What a source calls back with: a source that was replaced is recognised by its generation and
 * not listened to any more. */
typedef struct {
    CamCamera *camera;
    guint64 generation;
    CamPictureTimeline timeline; /* with the camera's lock held */
} CamFeed;

/* Tables that the source's thread uses while the main thread puts new ones in place. */
typedef struct {
    CamAdjust tables;
} CamSharedAdjust;

struct _CamCamera {
    gatomicrefcount refs;
    int id;
    CamSourceSpec spec;
    CamAudio *audio; /* NULL: none */

    /* Main thread only. */
    CamMode mode;
    CamSource *source, *no_signal;
    CamFeed *source_feed, *no_signal_feed;
    int closing;                /* sources on their way out */
    GstClockTime closing_since; /* the newest of them */
    gboolean closed;
    guint timer;
    CamSoundRing *sound; /* NULL: none is kept, or the camera has none */
    CamAudioCodec sound_codec;
    gsize sound_bytes; /* to be kept; 0: none */
    GstClockTime next_try, decoder_idle_since, decoder_retry;
    int decoders_ending;
    CamState state;
    char *reason;

    GMutex lock;     /* all below */
    GPtrArray *hubs; /* CamHub; private ones have no name */
    CamControls controls;
    CamSharedAdjust *adjust;
    guint64 generation;           /* of the source that is listened to; 0: none */
    guint64 no_signal_generation; /* likewise */
    guint64 next_generation;
    CamSourceInfo info;
    gboolean info_known, signal;
    gboolean native; /* the source delivers H.264 */
    guint64 frames_captured, frames_dropped, reopened;
    GstClockTime last_pts; /* of the newest picture of any source */
    CamStall stall;
    CamFrame newest;           /* buffer NULL: none */
    GstClockTime pixels_until; /* a still wants decoded frames */
    CamGopCache *gop;
    CamDecoder *decoder;
};

extern const CamSourceEvents cam_camera_source_events, cam_camera_no_signal_events;

/* camera.c, on the main thread */
void cam_camera_signal_arrived(CamCamera *camera, guint64 generation);
void cam_camera_source_lost(CamCamera *camera, guint64 generation, const char *reason);

/* camera_keep.c, main thread: begins to keep the sound that the camera has now. */
void cam_camera_renew_sound(CamCamera *camera);
/* Likewise: streams went; with the last that keeps its past goes the sound. */
void cam_camera_check_kept(CamCamera *camera);

/* camera_streams.c, main thread */
CamHub *cam_camera_add_hub(CamCamera *camera, const CamStreamConfig *config);
void cam_camera_set_streams(CamCamera *camera, const CamStreamConfig *streams, guint n_streams);

/* camera_feed.c */
/* Which hubs take the camera's own H.264 and which are encoded. Any thread. */
void cam_camera_route(CamCamera *camera);
/* A frame of the camera's own H.264, decoded; as CamDecoderOutput. */
void cam_camera_on_decoded(CamDecoder *decoder, GstBuffer *buffer, GstCaps *caps, GstClockTime pts,
                           gpointer camera);
void cam_camera_forget_frames(CamCamera *camera);
/* With lock held. */
void cam_camera_update_adjust(CamCamera *camera);

/* camera_decoder.c: starts, replaces or ends the decoder. Main thread. */
void cam_camera_update_decoder(CamCamera *camera);

/* camera_report.c */
void cam_camera_emit_state(CamCamera *camera);
