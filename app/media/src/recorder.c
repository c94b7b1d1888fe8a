/* A recorder's life. */
#include "recorder_private.h"
#include "events.h"
#include "log.h"

#define TICK_MS 250
/* For the sound of the last pictures, which comes after them. */
#define LAST_SOUND_US (250 * 1000)

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

/* The recorder lives until finished() has run, which comes after this in the queue of the main
 * loop, because nothing calls here once its files are closed. */
void cam_recorder_request_end(CamRecorder *self, CamRecorderEnd reason, const char *message)
{
    EndNote *note = g_new(EndNote, 1);

    if (message) {
        g_mutex_lock(&self->lock);
        if (!self->message)
            self->message = g_strdup(message);
        g_mutex_unlock(&self->lock);
    }
    *note = (EndNote){self, reason};
    cam_main_invoke(end_later, note, g_free);
}

static void attach(CamRecorder *self, GstClockTime past)
{
    self->passthrough = cam_hub_is_passthrough(self->hub);
    self->consumer =
        cam_hub_attach(self->hub, &(CamHubConsumer){.deliver = cam_recorder_deliver,
                                                    .ready = cam_recorder_ready,
                                                    .wants_key = cam_recorder_wants_key,
                                                    .user_data = self,
                                                    .past = past});
}

static void detach(CamRecorder *self)
{
    if (!self->consumer)
        return;
    self->dropped_before += cam_hub_consumer_dropped(self->hub, self->consumer);
    cam_hub_detach(self->hub, self->consumer);
    self->consumer = 0;
}

static void leave_hub(CamRecorder *self)
{
    detach(self);
    if (self->hub)
        cam_camera_release_hub(self->camera, g_steal_pointer(&self->hub));
}

static void recorder_free(CamRecorder *self)
{
    cam_recorder_clear_sound(self);
    g_clear_pointer(&self->audio, cam_audio_unref);
    gst_clear_caps(&self->format.audio_caps);
    g_clear_pointer(&self->parameter_sets, g_bytes_unref);
    cam_camera_unref(self->camera);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->changed);
    g_free(self->message);
    g_free(self->path);
    g_free(self);
}

static CamRecorder *recorder_new(const CamRecorderSetup *setup)
{
    CamRecorder *self = g_new0(CamRecorder, 1);

    self->id = setup->id;
    self->spec = setup->spec;
    self->camera = cam_camera_ref(setup->camera);
    self->hub = setup->hub;
    self->config = setup->hub ? cam_hub_config(setup->hub) : setup->config;
    self->path = g_strdup(setup->path);
    self->limit = (GstClockTime)setup->spec.duration_ms * GST_MSECOND;
    self->ended = setup->ended;
    self->user_data = setup->user_data;
    self->parts = 1;
    g_mutex_init(&self->lock);
    g_cond_init(&self->changed);
    self->format = (CamContainerFormat){.type = setup->spec.container,
                                        .video = self->config,
                                        .queue_frames = setup->spec.queue_frames,
                                        .frugal = setup->spec.mode == CAM_RECORD_TIMELAPSE,
                                        .has_audio = setup->spec.has_audio,
                                        .audio = setup->spec.audio};
    if (setup->spec.mode == CAM_RECORD_SLOW_MOTION)
        self->format.video.fps = setup->spec.playback_fps;
    if (setup->spec.has_audio) {
        self->audio = cam_audio_ref(setup->audio);
        self->format.audio_caps = cam_audio_caps(self->audio, setup->spec.audio);
        self->silence = cam_audio_silence(self->audio, setup->spec.audio);
    }
    return self;
}

/* Dead sound must not keep the file waiting, nor dead pictures the end. */
static gboolean on_tick(gpointer data)
{
    CamRecorder *self = data;

    g_mutex_lock(&self->lock);
    cam_recorder_pump_sound(self, FALSE);
    cam_recorder_check_limit(self);
    g_mutex_unlock(&self->lock);
    return G_SOURCE_CONTINUE;
}

static void start_sound(CamRecorder *self)
{
    if (!self->audio)
        return;
    self->audio_consumer = cam_audio_attach(self->audio, self->spec.audio,
                                            &(CamAudioConsumer){cam_recorder_deliver_sound, self});
}

static void collect(GstBuffer *unit, gpointer units)
{
    g_queue_push_tail(units, gst_buffer_copy(unit));
}

/* Puts the sound that is kept in front of what came meanwhile. */
static void add_past_sound(CamRecorder *self, GstClockTime past)
{
    GQueue units = G_QUEUE_INIT;
    GstBuffer *first, *unit;

    if (self->audio && past > 0)
        cam_camera_replay_sound(self->camera, self->spec.audio, past, collect, &units);
    g_mutex_lock(&self->lock);
    first = g_queue_peek_head(&self->units);
    while ((unit = g_queue_pop_tail(&units))) {
        if (first && GST_BUFFER_PTS(unit) >= GST_BUFFER_PTS(first))
            gst_buffer_unref(unit);
        else
            g_queue_push_head(&self->units, unit);
    }
    self->sound_held = FALSE;
    cam_recorder_pump_sound(self, FALSE);
    g_mutex_unlock(&self->lock);
}

static void start_hub(CamRecorder *self)
{
    GstClockTime past = 0;

    self->trigger = self->fed_at = cam_now();
    if (self->spec.pre_roll_ms > 0 && self->spec.mode == CAM_RECORD_VIDEO) {
        past = self->trigger - (GstClockTime)self->spec.pre_roll_ms * GST_MSECOND;
        cam_container_allow(self->part->container, cam_hub_kept(self->hub));
    }
    self->sound_held = TRUE;
    self->timer = g_timeout_add(TICK_MS, on_tick, self);
    start_sound(self);
    attach(self, past);
    add_past_sound(self, past);
}

static void on_timelapse_ended(const char *message, gpointer user_data)
{
    cam_recorder_request_end(user_data, message ? CAM_END_ERROR : CAM_END_DURATION, message);
}

static void start_timelapse(CamRecorder *self)
{
    self->limit = 0; /* the timelapse counts itself */
    self->timelapse = cam_timelapse_new(&(CamTimelapseSetup){.camera = self->camera,
                                                             .config = self->config,
                                                             .interval_ms = self->spec.interval_ms,
                                                             .duration_ms = self->spec.duration_ms,
                                                             .deliver = cam_recorder_deliver,
                                                             .wants_key = cam_recorder_wants_key,
                                                             .ended = on_timelapse_ended,
                                                             .user_data = self});
    if (!self->timelapse)
        cam_recorder_request_end(self, CAM_END_ERROR, "no encoder can be started");
}

CamRecorder *cam_recorder_start(const CamRecorderSetup *setup, int *error_number)
{
    CamRecorder *self = recorder_new(setup);

    self->part = cam_recorder_open_part(self, 1, error_number);
    if (!self->part) {
        leave_hub(self);
        recorder_free(self);
        return NULL;
    }
    self->finisher = g_thread_pool_new(cam_recorder_finish_part, NULL, 1, FALSE, NULL);
    if (self->hub)
        start_hub(self);
    else
        start_timelapse(self);
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

/* With lock held: what the pictures have, the sound has too. */
static void wait_for_sound(CamRecorder *self)
{
    gint64 deadline = g_get_monotonic_time() + LAST_SOUND_US;

    while (!g_queue_is_empty(&self->spans) &&
           g_cond_wait_until(&self->changed, &self->lock, deadline))
        continue;
    self->sound_over = TRUE;
    self->sound_held = FALSE;
    cam_recorder_pump_sound(self, TRUE);
}

static gpointer finish_thread(gpointer data)
{
    CamRecorder *self = data;

    g_clear_pointer(&self->timelapse, cam_timelapse_free);
    g_mutex_lock(&self->lock);
    cam_recorder_close_span(self);
    cam_recorder_close_part(self);
    wait_for_sound(self);
    g_mutex_unlock(&self->lock);
    if (self->audio)
        cam_audio_detach(self->audio, self->audio_consumer);
    cam_recorder_wait_for_parts(self);
    cam_main_invoke(finished, self, NULL);
    return NULL;
}

void cam_recorder_end(CamRecorder *self, CamRecorderEnd reason)
{
    if (self->ending) {
        /* Found out while the files are closed. */
        if (reason == CAM_END_DISK_FULL || reason == CAM_END_ERROR)
            self->reason = reason;
        return;
    }
    self->ending = TRUE;
    self->reason = reason;
    g_clear_handle_id(&self->timer, g_source_remove);
    if (self->timelapse) {
        self->missed = cam_timelapse_missed(self->timelapse);
        cam_timelapse_stop(self->timelapse);
    }
    leave_hub(self);
    g_thread_unref(g_thread_new("finish-file", finish_thread, self));
}

void cam_recorder_pause(CamRecorder *self)
{
    if (self->ending || self->paused)
        return;
    g_mutex_lock(&self->lock);
    self->paused = TRUE;
    if (!self->timelapse) {
        cam_recorder_close_span(self);
        cam_recorder_pump_sound(self, FALSE);
    }
    g_mutex_unlock(&self->lock);
    if (self->timelapse)
        cam_timelapse_pause(self->timelapse, TRUE);
    detach(self);
}

void cam_recorder_resume(CamRecorder *self)
{
    if (self->ending || !self->paused)
        return;
    g_mutex_lock(&self->lock);
    self->paused = FALSE;
    self->need_key = !self->timelapse;
    self->resumed_at = self->fed_at = cam_now();
    g_mutex_unlock(&self->lock);
    if (self->timelapse)
        cam_timelapse_pause(self->timelapse, FALSE);
    else
        attach(self, 0);
}

void cam_recorder_move(CamRecorder *self, CamHub *hub)
{
    if (self->ending) {
        cam_camera_release_hub(self->camera, hub);
        return;
    }
    leave_hub(self);
    self->hub = hub;
    if (!self->paused)
        attach(self, 0);
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

int cam_recorder_fps(CamRecorder *self)
{
    return self->format.video.fps;
}
