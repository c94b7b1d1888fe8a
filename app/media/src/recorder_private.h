/* A recorder's parts: its life (recorder.c), the time line of what is delivered
 * (recorder_timeline.c), the files (recorder_parts.c) and the sound (recorder_sound.c). */
#pragma once

#include "container.h"
#include "recorder.h"
#include "timelapse.h"

/* One file. */
typedef struct {
    CamRecorder *recorder;
    guint index; /* from 1 on */
    char *path;
    CamContainer *container;
    GstClockTime end, audio_end; /* of what it has, from 0 */
    guint64 frames;
    gsize bytes;      /* of the units */
    guint open_spans; /* whose sound is not complete */
    gboolean closed;  /* gets no more video */
    gint64 size_at_close;
} CamPart;

/* A stretch of time that lies in one file without a gap. */
typedef struct {
    GstClockTime from, to; /* on the helper's time line; to is 0 while it runs */
    GstClockTime at;       /* where it begins in the part */
    CamPart *part;
    gboolean begun; /* it has sound */
} CamSpan;

struct _CamRecorder {
    int id;
    CamRecordingSpec spec;
    CamStreamConfig config; /* of the encoder */
    CamContainerFormat format;
    char *path;
    CamCamera *camera;

    /* Main thread only. */
    CamHub *hub;
    guint consumer; /* 0: paused */
    CamTimelapse *timelapse;
    CamAudio *audio;
    guint audio_consumer, timer;
    CamRecorderEnded ended;
    gpointer user_data;
    gboolean ending;
    CamRecorderEnd reason;
    guint64 dropped_before; /* at hubs that it has left */
    guint64 missed;         /* by a timelapse that has ended */

    GMutex lock; /* all below */
    GCond changed;
    char *message;
    GBytes *parameter_sets; /* the one description that the file's header has */
    gboolean mismatch, full;
    gboolean checking;           /* check_mismatch() is under way */
    int mismatches;              /* checks in a row */
    GstClockTime mismatch_since; /* or since the last check */

    gboolean passthrough;               /* the camera's own pictures: no key frame can be had */
    gboolean paused, need_key, running; /* running: a span is open */
    GstClockTime trigger, pre_roll, resumed_at;
    GstClockTime limit;    /* of what is captured; 0: none */
    GstClockTime captured; /* in the spans before the running one */
    GstClockTime span_from, span_at;
    GstClockTime last_pts, span_end; /* of the newest picture, and where it ends */
    GstClockTime fed_at; /* when that came or one before its key frame, or it began or went on */
    guint64 frames, dropped;

    CamPart *part, *next; /* next: opened in advance */
    gboolean opening, key_wanted;
    guint parts, unfinished;
    gint64 closed_ms, closed_bytes; /* of closed parts; the bytes of unfinished ones as they were */
    GThreadPool *finisher;          /* one thread: parts are finished in their order */

    GQueue spans, units;
    gboolean sound_held, sound_over;
    GstBuffer *silence;
};

/* recorder.c; any thread. MESSAGE may be NULL; lock not held. */
void cam_recorder_request_end(CamRecorder *recorder, CamRecorderEnd reason, const char *message);

/* recorder_report.c: the first picture, captured AT, is in the file. */
void cam_recorder_tell_began(CamRecorder *recorder, GstClockTime at);

/* recorder_timeline.c, as the hub's consumer */
gboolean cam_recorder_deliver(GstBuffer *au, gpointer recorder);
gboolean cam_recorder_ready(gpointer recorder);
gboolean cam_recorder_wants_key(gpointer recorder);
/* With lock held: ends it at its limit also when no picture comes that would be beyond it. */
void cam_recorder_check_limit(CamRecorder *recorder);
/* With lock held. */
void cam_recorder_close_span(CamRecorder *recorder);

/* recorder_parts.c; with lock held but for the first and the last. */
CamPart *cam_recorder_open_part(CamRecorder *recorder, guint index, int *error_number);
/* After each unit: looks ahead to the limits. */
void cam_recorder_check_part(CamRecorder *recorder);
/* A key frame may begin the next part now. */
gboolean cam_recorder_part_due(CamRecorder *recorder);
void cam_recorder_change_part(CamRecorder *recorder);
void cam_recorder_close_part(CamRecorder *recorder);
void cam_recorder_finish_if_complete(CamPart *part);
/* Thread pool function: the end of a part. */
void cam_recorder_finish_part(gpointer part, gpointer unused);
/* Waits for all parts and removes one that was opened in vain. */
void cam_recorder_wait_for_parts(CamRecorder *recorder);

/* recorder_sound.c; with lock held but for the first. */
gboolean cam_recorder_deliver_sound(GstBuffer *unit, gpointer recorder);
void cam_recorder_open_sound_span(CamRecorder *recorder);
void cam_recorder_close_sound_span(CamRecorder *recorder);
/* Writes what can be. OVER: nothing more comes. */
void cam_recorder_pump_sound(CamRecorder *recorder, gboolean over);
void cam_recorder_clear_sound(CamRecorder *recorder);
