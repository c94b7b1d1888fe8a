/* A camera's life: opening, losing and reopening its source; its streams. */
#include "camera_private.h"
#include "ending.h"
#include "log.h"

#define TICK_MS 250
#define RETRY (1 * GST_SECOND)
/* A source that takes longer to close hangs; it is left to itself, but only so many of them. */
#define CLOSE_TIMEOUT (5 * GST_SECOND)
#define MAX_HUNG 3
#define GOP_CACHE_BYTES (8 * 1024 * 1024)
#define STILL_KEEPS_PIXELS (5 * GST_SECOND)

static gboolean on_tick(gpointer data);
static void open_source(CamCamera *camera);

CamCamera *cam_camera_ref(CamCamera *camera)
{
    g_atomic_ref_count_inc(&camera->refs);
    return camera;
}

void cam_camera_unref(CamCamera *camera)
{
    if (!g_atomic_ref_count_dec(&camera->refs))
        return;
    g_ptr_array_unref(camera->hubs);
    g_atomic_rc_box_release(camera->adjust);
    cam_gop_cache_free(camera->gop);
    cam_frame_clear(&camera->newest);
    cam_source_spec_clear(&camera->spec);
    g_clear_pointer(&camera->audio, cam_audio_unref);
    g_free(camera->reason);
    g_mutex_clear(&camera->lock);
    g_free(camera);
}

void cam_frame_clear(CamFrame *frame)
{
    gst_clear_buffer(&frame->buffer);
}

gboolean cam_camera_is_streaming(CamCamera *camera)
{
    return camera->state == CAM_STATE_STREAMING;
}

CamAudio *cam_camera_audio(CamCamera *camera)
{
    return camera->audio ? cam_audio_ref(camera->audio) : NULL;
}

void cam_camera_set_audio(CamCamera *camera, const CamAudioSpec *spec)
{
    if (camera->audio)
        cam_audio_close(camera->audio);
    g_clear_pointer(&camera->audio, cam_audio_unref);
    if (spec->type != CAM_AUDIO_NONE)
        camera->audio = cam_audio_new(spec, camera->id);
    cam_camera_renew_sound(camera);
}

int cam_camera_id(CamCamera *camera)
{
    return camera->id;
}

CamCamera *cam_camera_new(const CamCameraSetup *setup)
{
    CamCamera *camera = g_new0(CamCamera, 1);

    g_atomic_ref_count_init(&camera->refs);
    g_mutex_init(&camera->lock);
    camera->id = setup->id;
    camera->spec = cam_source_spec_copy(&setup->spec);
    cam_camera_set_audio(camera, &setup->audio);
    camera->mode = setup->mode;
    camera->controls = setup->controls;
    camera->hubs = g_ptr_array_new_with_free_func((GDestroyNotify)cam_hub_unref);
    camera->gop = cam_gop_cache_new(GOP_CACHE_BYTES);
    cam_camera_update_adjust(camera);
    for (guint i = 0; i < setup->n_streams; i++)
        cam_camera_add_hub(camera, &setup->streams[i]);
    cam_stall_init(&camera->stall);
    camera->timer = g_timeout_add(TICK_MS, on_tick, camera);
    cam_camera_emit_state(camera);
    open_source(camera);
    return camera;
}

static void set_state(CamCamera *camera, CamState state, const char *reason)
{
    if (camera->state == state && g_strcmp0(camera->reason, reason) == 0)
        return;
    camera->state = state;
    g_free(camera->reason);
    camera->reason = g_strdup(reason);
    cam_log(CAM_LOG_INFO, "camera", "camera %d: %s%s%s", camera->id,
            state == CAM_STATE_STREAMING  ? "streaming"
            : state == CAM_STATE_STARTING ? "starting"
                                          : "no signal",
            reason ? ": " : "", reason ? reason : "");
    cam_camera_emit_state(camera);
}

static CamFeed *feed_new(CamCamera *camera, guint64 *generation)
{
    CamFeed *feed = g_new(CamFeed, 1);

    g_mutex_lock(&camera->lock);
    *generation = ++camera->next_generation;
    *feed = (CamFeed){.camera = cam_camera_ref(camera), .generation = *generation};
    g_mutex_unlock(&camera->lock);
    return feed;
}

static void feed_free(CamFeed *feed)
{
    cam_camera_unref(feed->camera);
    g_free(feed);
}

/* The device is free, or its last user hangs. */
static gboolean can_open(CamCamera *camera)
{
    return camera->closing == 0 ||
           (camera->closing <= MAX_HUNG && cam_now() > camera->closing_since + CLOSE_TIMEOUT);
}

static void open_source(CamCamera *camera)
{
    CamSourceSetup setup = {
        .spec = &camera->spec, .mode = camera->mode, .events = &cam_camera_source_events};

    if (camera->closed || !can_open(camera))
        return;
    camera->source_feed = feed_new(camera, &camera->generation);
    g_mutex_lock(&camera->lock);
    cam_stall_opened(&camera->stall, cam_now());
    setup.controls = camera->controls;
    setup.first_number = camera->frames_captured + 1;
    g_mutex_unlock(&camera->lock);
    setup.owner = camera->source_feed;
    camera->source = cam_source_open(&setup);
}

typedef struct {
    CamCamera *camera;
    CamSource *source;
    CamFeed *feed;
} Closing;

static void end_source(gpointer data)
{
    Closing *closing = data;

    cam_source_free(closing->source);
}

static void source_ended(gpointer data)
{
    Closing *closing = data;
    CamCamera *camera = closing->camera;

    camera->closing--;
    if (camera->state == CAM_STATE_STARTING && !camera->source)
        open_source(camera);
}

static void closing_free(gpointer data)
{
    Closing *closing = data;

    feed_free(closing->feed);
    cam_camera_unref(closing->camera);
    g_free(closing);
}

/* From here on the source is not heard; a device may take its time to close. */
static void close_source(CamCamera *camera)
{
    Closing *closing;

    g_mutex_lock(&camera->lock);
    camera->generation = 0;
    camera->signal = FALSE;
    camera->info_known = FALSE;
    g_mutex_unlock(&camera->lock);
    cam_camera_forget_frames(camera);
    if (!camera->source)
        return;
    closing = g_new(Closing, 1);
    *closing = (Closing){cam_camera_ref(camera), g_steal_pointer(&camera->source),
                         g_steal_pointer(&camera->source_feed)};
    camera->closing++;
    camera->closing_since = cam_now();
    cam_end_apart(end_source, closing, source_ended, closing_free);
}

static void start_no_signal(CamCamera *camera)
{
    CamSourceSetup setup = {
        .spec = &camera->spec, .mode = camera->mode, .events = &cam_camera_no_signal_events};

    if (camera->no_signal)
        return;
    camera->no_signal_feed = feed_new(camera, &camera->no_signal_generation);
    setup.owner = camera->no_signal_feed;
    camera->no_signal = cam_source_no_signal_new(&setup);
}

static void stop_no_signal(CamCamera *camera)
{
    if (!camera->no_signal)
        return;
    g_clear_pointer(&camera->no_signal, cam_source_free);
    g_clear_pointer(&camera->no_signal_feed, feed_free);
}

static gboolean is_current(CamCamera *camera, guint64 generation)
{
    gboolean current;

    g_mutex_lock(&camera->lock);
    current = camera->generation == generation && generation != 0;
    g_mutex_unlock(&camera->lock);
    return current;
}

void cam_camera_signal_arrived(CamCamera *camera, guint64 generation)
{
    if (!is_current(camera, generation))
        return;
    stop_no_signal(camera);
    if (camera->state == CAM_STATE_NO_SIGNAL) {
        g_mutex_lock(&camera->lock);
        camera->reopened++;
        g_mutex_unlock(&camera->lock);
    }
    set_state(camera, CAM_STATE_STREAMING, NULL);
    cam_camera_update_decoder(camera);
}

void cam_camera_source_lost(CamCamera *camera, guint64 generation, const char *reason)
{
    if (!is_current(camera, generation))
        return;
    close_source(camera);
    camera->next_try = cam_now() + RETRY;
    cam_camera_route(camera);
    cam_camera_update_decoder(camera);
    start_no_signal(camera);
    set_state(camera, CAM_STATE_NO_SIGNAL, reason);
}

/* A source that is there but gives nothing is as lost as one that is gone. */
static const char *stalled(CamCamera *camera)
{
    const char *reason;

    g_mutex_lock(&camera->lock);
    reason = cam_stall_check(&camera->stall, camera->info.fps, cam_now());
    g_mutex_unlock(&camera->lock);
    return reason;
}

static gboolean on_tick(gpointer data)
{
    CamCamera *camera = data;
    const char *reason;

    if (camera->source) {
        reason = stalled(camera);
        if (reason)
            cam_camera_source_lost(camera, camera->source_feed->generation, reason);
    } else if (cam_now() >= camera->next_try) {
        camera->next_try = cam_now() + RETRY;
        open_source(camera);
    }
    cam_camera_update_decoder(camera);
    return G_SOURCE_CONTINUE;
}

void cam_camera_close(CamCamera *camera)
{
    camera->closed = TRUE;
    g_clear_handle_id(&camera->timer, g_source_remove);
    close_source(camera);
    stop_no_signal(camera);
    cam_camera_update_decoder(camera);
    g_clear_pointer(&camera->sound, cam_sound_ring_free);
    if (camera->audio)
        cam_audio_close(camera->audio);
    /* Only this thread changes the list, so it may read it without the lock. */
    for (guint i = 0; i < camera->hubs->len; i++)
        cam_hub_close(camera->hubs->pdata[i]);
}

static void reopen(CamCamera *camera)
{
    close_source(camera);
    stop_no_signal(camera);
    cam_camera_route(camera);
    cam_camera_update_decoder(camera);
    camera->next_try = cam_now();
    if (camera->closing > MAX_HUNG) {
        start_no_signal(camera);
        set_state(camera, CAM_STATE_NO_SIGNAL, "the camera hangs: it does not close");
        return;
    }
    set_state(camera, CAM_STATE_STARTING, NULL);
    open_source(camera);
}

void cam_camera_configure(CamCamera *camera, const CamMode *mode, const CamStreamConfig *streams,
                          guint n_streams)
{
    if (streams) {
        cam_camera_set_streams(camera, streams, n_streams);
        cam_camera_check_kept(camera);
    }
    if (mode && (mode->width != camera->mode.width || mode->height != camera->mode.height ||
                 mode->fps != camera->mode.fps)) {
        camera->mode = *mode;
        reopen(camera);
    }
}

void cam_camera_restart(CamCamera *camera)
{
    g_mutex_lock(&camera->lock);
    camera->reopened++;
    g_mutex_unlock(&camera->lock);
    reopen(camera);
}

void cam_camera_set_controls(CamCamera *camera, const CamControls *controls)
{
    CamControls all;

    g_mutex_lock(&camera->lock);
    for (int i = 0; i < CAM_N_CONTROLS; i++) {
        if (controls->value[i] >= 0)
            camera->controls.value[i] = controls->value[i];
    }
    all = camera->controls;
    cam_camera_update_adjust(camera);
    g_mutex_unlock(&camera->lock);
    if (camera->source)
        cam_source_set_controls(camera->source, &all);
    cam_camera_route(camera);
    cam_camera_update_decoder(camera);
}

CamFrameAnswer cam_camera_take_frame(CamCamera *camera, CamFrame *frame)
{
    CamFrameAnswer answer = CAM_FRAME_NONE;

    g_mutex_lock(&camera->lock);
    if (camera->signal) {
        if (camera->native)
            camera->pixels_until = cam_now() + STILL_KEEPS_PIXELS;
        /* A decoder that has just been started first shows the past. */
        if (camera->newest.buffer &&
            (!camera->native || camera->newest.pts + 500 * GST_MSECOND >= camera->last_pts)) {
            *frame = camera->newest;
            gst_buffer_ref(frame->buffer);
            answer = CAM_FRAME_READY;
        } else {
            answer = CAM_FRAME_SOON;
        }
    }
    g_mutex_unlock(&camera->lock);
    if (answer == CAM_FRAME_SOON)
        cam_camera_update_decoder(camera);
    return answer;
}
