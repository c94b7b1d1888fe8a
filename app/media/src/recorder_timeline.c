/* What of the delivered pictures goes into the file, and when it is shown. */
#include "events.h"
#include "parameter_sets.h"
#include "recorder_private.h"

/* Frame times are whole nanoseconds, so the one that starts at the end may be a hair early. */
#define TOLERANCE GST_MSECOND
/* Pictures that do not fit are looked into this often; so many times in a row is for good. */
#define MISMATCH_CHECK GST_SECOND
#define MISMATCH_CHECKS 3
/* A key frame that was under way when the recording went on is not from the pause. */
#define RESUME_TOLERANCE (100 * GST_MSECOND)
/* Pictures that are late by more than that do not come: it is longer than a camera is waited for
 * before "no signal" stands in for it, between two pictures or to the first. A camera with an
 * encoder of its own may have long groups: its next key frame takes its time, too. */
#define OVERDUE (10 * GST_SECOND)
#define FIRST_OVERDUE (45 * GST_SECOND)

static gboolean is_key(GstBuffer *au)
{
    return !GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT);
}

/* Without signal the camera's own picture may well come back; else it will not. */
static gboolean check_mismatch(gpointer data)
{
    CamRecorder *self = data;
    gboolean streaming = cam_camera_is_streaming(self->camera), for_good;

    g_mutex_lock(&self->lock);
    self->checking = FALSE;
    self->mismatches = self->mismatch && streaming ? self->mismatches + 1 : 0;
    for_good = self->mismatches >= MISMATCH_CHECKS && !self->ending;
    g_mutex_unlock(&self->lock);
    if (for_good)
        cam_recorder_request_end(self, CAM_END_ERROR,
                                 "the camera's encoding changed to one that does not fit the file");
    return G_SOURCE_REMOVE;
}

/* With lock held. */
static void set_mismatch(CamRecorder *self, gboolean mismatch, GstClockTime now)
{
    if (mismatch && !self->mismatch)
        self->mismatch_since = now;
    if (!mismatch)
        self->mismatches = 0;
    self->mismatch = mismatch;
}

/* With lock held. An MP4 track has one description; pictures that need another (the "no signal"
 * picture between those of a camera with an encoder of its own) are left out. */
static gboolean fits(CamRecorder *self, GstBuffer *au)
{
    GBytes *sets;

    if (self->config.codec != CAM_VIDEO_H264)
        return TRUE;
    if (!is_key(au))
        return !self->mismatch;
    sets = cam_parameter_sets(au);
    if (!self->parameter_sets)
        self->parameter_sets = sets ? g_bytes_ref(sets) : NULL;
    else if (sets)
        set_mismatch(self, !g_bytes_equal(sets, self->parameter_sets), GST_BUFFER_PTS(au));
    g_clear_pointer(&sets, g_bytes_unref);
    return !self->mismatch;
}

/* With lock held. */
static GstClockTime captured_until(CamRecorder *self, GstClockTime at)
{
    return self->captured + (self->running ? at - self->span_from : 0);
}

/* With lock held: TRUE once that much is CAPTURED; the end is asked for. */
static gboolean is_full(CamRecorder *self, GstClockTime captured)
{
    if (!self->limit || captured + TOLERANCE < self->limit + self->pre_roll)
        return FALSE;
    if (!self->full)
        cam_recorder_request_end(self, CAM_END_DURATION, NULL);
    self->full = TRUE;
    return TRUE;
}

/* With lock held: TRUE for a frame AT the end or after it. */
static gboolean over_limit(CamRecorder *self, GstClockTime at)
{
    return is_full(self, captured_until(self, at));
}

void cam_recorder_check_limit(CamRecorder *self)
{
    GstClockTime waited = cam_now() - self->fed_at;
    gboolean begins = self->frames == 0 || self->need_key;

    /* The time of what did not come counts as captured. */
    if (!self->paused && waited > (begins ? FIRST_OVERDUE : OVERDUE))
        is_full(self, captured_until(self, self->last_pts) + waited);
}

/* With lock held. */
static void leave_out(CamRecorder *self, GstBuffer *au)
{
    GstClockTime at = GST_BUFFER_PTS(au);

    self->dropped++;
    gst_buffer_unref(au);
    if (over_limit(self, at) || self->checking || at < self->mismatch_since + MISMATCH_CHECK)
        return;
    self->mismatch_since = at;
    self->checking = TRUE;
    cam_main_invoke(check_mismatch, self, NULL);
}

static void open_span(CamRecorder *self, GstClockTime at)
{
    if (self->frames == 0 && at < self->trigger &&
        self->trigger - at <= (GstClockTime)self->spec.pre_roll_ms * GST_MSECOND)
        self->pre_roll = self->trigger - at;
    self->running = TRUE;
    self->span_from = at;
    self->span_at = self->part->end;
    cam_recorder_open_sound_span(self);
}

void cam_recorder_close_span(CamRecorder *self)
{
    if (!self->running)
        return;
    self->running = FALSE;
    self->captured += self->span_end - self->span_from;
    cam_recorder_close_sound_span(self);
}

/* Sets when the picture captured AT is shown, and for how long. */
static void set_times(CamRecorder *self, GstBuffer *au, GstClockTime at)
{
    GstClockTime shown = at - self->span_from;

    if (self->spec.mode == CAM_RECORD_SLOW_MOTION) {
        guint64 number = gst_util_uint64_scale_round(shown, (guint64)self->config.fps, GST_SECOND);

        shown = gst_util_uint64_scale(number, GST_SECOND, (guint64)self->spec.playback_fps);
        GST_BUFFER_DURATION(au) = GST_SECOND / (guint64)self->spec.playback_fps;
    }
    GST_BUFFER_PTS(au) = self->span_at + shown;
    GST_BUFFER_DTS(au) = GST_BUFFER_PTS(au);
}

/* With lock held. */
static gboolean write_unit(CamRecorder *self, GstBuffer *au)
{
    GstClockTime at = GST_BUFFER_PTS(au), captured_end = at + GST_BUFFER_DURATION(au), end;
    gsize bytes = gst_buffer_get_size(au);

    /* Older ones come only after a move between hubs: they are there already. */
    if (at <= self->last_pts || over_limit(self, at)) {
        gst_buffer_unref(au);
        return TRUE;
    }
    if (is_key(au) && cam_recorder_part_due(self)) {
        self->span_end = at;
        cam_recorder_change_part(self);
    }
    if (!self->running)
        open_span(self, at);
    set_times(self, au, at);
    end = GST_BUFFER_PTS(au) + GST_BUFFER_DURATION(au);
    if (!cam_container_push_video(self->part->container, au))
        return FALSE;
    self->last_pts = at;
    self->span_end = captured_end;
    self->fed_at = cam_now();
    if (self->frames++ == 0)
        cam_recorder_tell_began(self, at);
    self->part->frames++;
    self->part->bytes += bytes;
    self->part->end = end;
    cam_recorder_check_part(self);
    return TRUE;
}

/* With lock held: FALSE until the key frame came that the recording goes on with. */
static gboolean goes_on(CamRecorder *self, GstBuffer *au)
{
    GstClockTime tolerance = self->passthrough ? 0 : RESUME_TOLERANCE;

    if (!self->need_key)
        return TRUE;
    if (!is_key(au) || GST_BUFFER_PTS(au) + tolerance < self->resumed_at)
        return FALSE;
    self->need_key = FALSE;
    return TRUE;
}

gboolean cam_recorder_deliver(GstBuffer *au, gpointer user_data)
{
    CamRecorder *self = user_data;
    gboolean taken = TRUE;

    g_mutex_lock(&self->lock);
    if (self->paused && !self->timelapse) {
        gst_buffer_unref(au);
    } else if (!goes_on(self, au)) {
        gst_buffer_unref(au);
        /* Refused, the hub makes another key frame. */
        taken = self->passthrough;
    } else if (fits(self, au)) {
        taken = write_unit(self, au);
        cam_recorder_pump_sound(self, FALSE);
    } else {
        leave_out(self, au);
    }
    g_mutex_unlock(&self->lock);
    return taken;
}

gboolean cam_recorder_ready(gpointer user_data)
{
    CamRecorder *self = user_data;
    gboolean ready;

    g_mutex_lock(&self->lock);
    ready = cam_container_has_room(self->part->container);
    g_mutex_unlock(&self->lock);
    return ready;
}

gboolean cam_recorder_wants_key(gpointer user_data)
{
    CamRecorder *self = user_data;
    gboolean wanted;

    g_mutex_lock(&self->lock);
    wanted = self->key_wanted;
    g_mutex_unlock(&self->lock);
    return wanted;
}
