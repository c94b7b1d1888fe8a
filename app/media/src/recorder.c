#include "recorder.h"
#include "events.h"
#include "log.h"
#include "parameter_sets.h"
#include "recorder_pipeline.h"

/* Frame times are whole nanoseconds, so the one that starts at the end may be a hair early. */
#define TOLERANCE GST_MSECOND
/* Pictures that do not fit are looked into this often; so many times in a row is for good. */
#define MISMATCH_CHECK GST_SECOND
#define MISMATCH_CHECKS 3

struct _CamRecorder {
    int id;
    CamCamera *camera;
    CamHub *hub;
    guint consumer;
    CamStreamConfig config;
    CamMp4 *mp4;
    CamRecorderEnded ended;
    gpointer user_data;
    GstClockTime limit; /* 0: none */
    gboolean ending;
    CamRecorderEnd reason;
    gint64 final_size;
    guint64 dropped_before; /* at hubs that it has left */

    GMutex lock;
    char *message;
    GBytes *parameter_sets; /* the one description that the file's header has */
    gboolean mismatch, full;
    gboolean checking;               /* check_mismatch() is under way */
    int mismatches;                  /* checks in a row */
    GstClockTime mismatch_since;     /* or since the last check */
    GstClockTime first_pts, end_pts; /* end_pts: where the last frame ends, from 0 */
    guint64 frames, dropped;
};

typedef struct {
    CamRecorder *recorder;
    CamRecorderEnd reason;
} EndNote;

static gboolean end_later(gpointer data)
{
    EndNote *note = data;

    cam_recorder_end(note->recorder, note->reason);
    return G_SOURCE_REMOVE;
}

/* Any thread. The recorder lives until finished() has run, which comes after this in the queue of
 * the main loop, because nothing calls here once the pipeline is down. */
static void request_end(CamRecorder *self, CamRecorderEnd reason)
{
    EndNote *note = g_new(EndNote, 1);

    *note = (EndNote){self, reason};
    cam_main_invoke(end_later, note, g_free);
}

static void on_broken(gboolean disk_full, const char *message, gpointer user_data)
{
    CamRecorder *self = user_data;

    g_mutex_lock(&self->lock);
    if (!self->message)
        self->message = g_strdup(message);
    g_mutex_unlock(&self->lock);
    request_end(self, disk_full ? CAM_END_DISK_FULL : CAM_END_ERROR);
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
    if (for_good && !self->message)
        self->message = g_strdup("the camera's encoding changed to one that does not fit the file");
    g_mutex_unlock(&self->lock);
    if (for_good)
        cam_recorder_end(self, CAM_END_ERROR);
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

    if (GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT))
        return !self->mismatch;
    sets = cam_parameter_sets(au);
    if (!self->parameter_sets)
        self->parameter_sets = sets ? g_bytes_ref(sets) : NULL;
    else if (sets)
        set_mismatch(self, !g_bytes_equal(sets, self->parameter_sets), GST_BUFFER_PTS(au));
    g_clear_pointer(&sets, g_bytes_unref);
    return !self->mismatch;
}

/* With lock held: TRUE for a frame AT the end or after it. */
static gboolean over_limit(CamRecorder *self, GstClockTime at)
{
    if (!self->limit || self->frames == 0 || at + TOLERANCE < self->first_pts + self->limit)
        return FALSE;
    if (!self->full)
        request_end(self, CAM_END_DURATION);
    self->full = TRUE;
    return TRUE;
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

static gboolean write_unit(CamRecorder *self, GstBuffer *au)
{
    GstClockTime at = GST_BUFFER_PTS(au), duration = GST_BUFFER_DURATION(au);

    if (self->frames == 0)
        self->first_pts = at;
    else if (at < self->first_pts + self->end_pts - duration + 1) {
        /* Only after a move between hubs: the frame is there already. */
        gst_buffer_unref(au);
        return TRUE;
    }
    if (over_limit(self, at)) {
        gst_buffer_unref(au);
        return TRUE;
    }
    at -= self->first_pts;
    GST_BUFFER_PTS(au) = at;
    GST_BUFFER_DTS(au) = at;
    if (!cam_mp4_push(self->mp4, au))
        return FALSE;
    self->frames++;
    self->end_pts = at + duration;
    return TRUE;
}

static gboolean deliver(GstBuffer *au, gpointer user_data)
{
    CamRecorder *self = user_data;
    gboolean taken = TRUE;

    g_mutex_lock(&self->lock);
    if (fits(self, au)) {
        taken = write_unit(self, au);
    } else {
        leave_out(self, au);
    }
    g_mutex_unlock(&self->lock);
    return taken;
}

static gboolean ready(gpointer user_data)
{
    CamRecorder *self = user_data;

    return cam_mp4_has_room(self->mp4);
}

static void attach(CamRecorder *self)
{
    self->consumer = cam_hub_attach(self->hub, &(CamHubConsumer){deliver, ready, self});
}

static void leave_hub(CamRecorder *self)
{
    self->dropped_before += cam_hub_consumer_dropped(self->hub, self->consumer);
    cam_hub_detach(self->hub, self->consumer);
    cam_camera_release_hub(self->camera, g_steal_pointer(&self->hub));
}

static void recorder_free(CamRecorder *self)
{
    g_clear_pointer(&self->mp4, cam_mp4_free);
    g_clear_pointer(&self->parameter_sets, g_bytes_unref);
    cam_camera_unref(self->camera);
    g_mutex_clear(&self->lock);
    g_free(self->message);
    g_free(self);
}

CamRecorder *cam_recorder_start(const CamRecorderSetup *setup, int *error_number)
{
    CamRecorder *self = g_new0(CamRecorder, 1);

    self->id = setup->id;
    self->camera = cam_camera_ref(setup->camera);
    self->hub = setup->hub;
    self->config = cam_hub_config(setup->hub);
    self->limit = (GstClockTime)setup->duration_ms * GST_MSECOND;
    self->ended = setup->ended;
    self->user_data = setup->user_data;
    g_mutex_init(&self->lock);
    self->mp4 = cam_mp4_new(setup->path, &self->config, on_broken, self, error_number);
    if (!self->mp4) {
        cam_camera_release_hub(self->camera, self->hub);
        recorder_free(self);
        return NULL;
    }
    attach(self);
    return self;
}

static const char *end_name(CamRecorderEnd reason)
{
    static const char *const names[] = {"stopped", "duration",       "disk_full",
                                        "error",   "camera_removed", "shutdown"};

    return names[reason];
}

static gboolean finished(gpointer data)
{
    CamRecorder *self = data;
    JsonObject *object = json_object_new();

    json_object_set_int_member(object, "id", self->id);
    json_object_set_string_member(object, "reason", end_name(self->reason));
    cam_json_set_string(object, "message", self->message);
    cam_recorder_result(self, object);
    cam_event_emit("recorder.ended", object);
    cam_log(CAM_LOG_INFO, "recorder", "recorder %d ended: %s", self->id, end_name(self->reason));
    self->ended(self, self->user_data);
    recorder_free(self);
    return G_SOURCE_REMOVE;
}

static gpointer finish_thread(gpointer data)
{
    CamRecorder *self = data;

    self->final_size = cam_mp4_finish(self->mp4);
    cam_main_invoke(finished, self, NULL);
    return NULL;
}

void cam_recorder_end(CamRecorder *self, CamRecorderEnd reason)
{
    if (self->ending)
        return;
    self->ending = TRUE;
    self->reason = reason;
    leave_hub(self);
    g_thread_unref(g_thread_new("finish-file", finish_thread, self));
}

void cam_recorder_move(CamRecorder *self, CamHub *hub)
{
    if (self->ending) {
        cam_camera_release_hub(self->camera, hub);
        return;
    }
    leave_hub(self);
    self->hub = hub;
    attach(self);
}

int cam_recorder_id(CamRecorder *self)
{
    return self->id;
}

CamCamera *cam_recorder_camera(CamRecorder *self)
{
    return self->camera;
}

CamHub *cam_recorder_hub(CamRecorder *self)
{
    return self->hub;
}

CamStreamConfig cam_recorder_config(CamRecorder *self)
{
    return self->config;
}

void cam_recorder_result(CamRecorder *self, JsonObject *object)
{
    /* Sizes come from the file; once it is closed, from what it was then. */
    gint64 size = self->ending ? self->final_size : cam_mp4_size(self->mp4);

    g_mutex_lock(&self->lock);
    json_object_set_int_member(object, "duration_ms",
                               (gint64)((self->end_pts + GST_MSECOND / 2) / GST_MSECOND));
    json_object_set_int_member(object, "size_bytes", size);
    json_object_set_int_member(object, "frames", (gint64)self->frames);
    g_mutex_unlock(&self->lock);
}

JsonObject *cam_recorder_stats(CamRecorder *self)
{
    JsonObject *object = json_object_new();
    guint64 dropped = self->dropped_before;

    if (self->hub)
        dropped += cam_hub_consumer_dropped(self->hub, self->consumer);
    json_object_set_int_member(object, "id", self->id);
    json_object_set_int_member(object, "camera", cam_camera_id(self->camera));
    cam_recorder_result(self, object);
    g_mutex_lock(&self->lock);
    dropped += self->dropped;
    g_mutex_unlock(&self->lock);
    json_object_set_int_member(object, "frames_dropped", (gint64)dropped);
    return object;
}
