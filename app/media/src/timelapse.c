#include "timelapse.h"
#include "encoder.h"
#include "encoder_choice.h"
#include "ending.h"

#define RETRY_MS 20
/* A decoder that must be started first takes a while. */
#define PATIENCE (2 * GST_SECOND)
#define DRAIN_US (2 * G_USEC_PER_SEC)

struct _CamTimelapse {
    CamTimelapseSetup setup;
    CamEncoder *encoder;
    guint timer;
    GstClockTime base; /* when it began; later by the pauses */
    GstClockTime paused_at;
    guint64 slot;  /* the next, at base + slot * interval */
    guint64 taken; /* pictures */
    guint64 missed;
    GstVideoInfo info;
    GstCaps *caps; /* of info */
    GMutex lock;
    GCond delivered;
    guint64 out;
    gboolean failed, cut_off; /* cut off: its owner is not called any more */
    int key_wanted;
};

static void schedule(CamTimelapse *self);

static void on_output(CamEncoder *encoder, GstBuffer *au, gpointer user_data)
{
    CamTimelapse *self = user_data;

    g_mutex_lock(&self->lock);
    if (self->cut_off) {
        gst_buffer_unref(au);
    } else {
        self->setup.deliver(au, self->setup.user_data);
        g_atomic_int_set(&self->key_wanted, self->setup.wants_key(self->setup.user_data));
        self->out++;
        g_cond_broadcast(&self->delivered);
    }
    g_mutex_unlock(&self->lock);
}

static void on_failed(CamEncoder *encoder, const char *message, gpointer user_data)
{
    CamTimelapse *self = user_data;

    g_mutex_lock(&self->lock);
    self->failed = TRUE;
    g_cond_broadcast(&self->delivered);
    if (!self->cut_off)
        self->setup.ended(message, self->setup.user_data);
    g_mutex_unlock(&self->lock);
}

static GstClockTime slot_time(CamTimelapse *self)
{
    return self->base + self->slot * (GstClockTime)self->setup.interval_ms * GST_MSECOND;
}

static GstCaps *caps_of(CamTimelapse *self, const GstVideoInfo *info)
{
    if (!self->caps || !gst_video_info_is_equal(&self->info, info)) {
        gst_clear_caps(&self->caps);
        self->info = *info;
        self->caps = gst_video_info_to_caps(&self->info);
    }
    return self->caps;
}

static void take(CamTimelapse *self, CamFrame *frame)
{
    GstClockTime shown =
        gst_util_uint64_scale(self->taken, GST_SECOND, (guint64)self->setup.config.fps);

    if (g_atomic_int_compare_and_exchange(&self->key_wanted, TRUE, FALSE))
        cam_encoder_force_key(self->encoder);
    /* 0 is no time in the recorder. */
    if (cam_encoder_push(self->encoder, frame->buffer, caps_of(self, &frame->info),
                         GST_SECOND + shown))
        self->taken++;
    else
        self->missed++;
    cam_frame_clear(frame);
}

/* FALSE: the picture of this slot may still come. */
static gboolean try_slot(CamTimelapse *self)
{
    GstClockTime interval = (GstClockTime)self->setup.interval_ms * GST_MSECOND;
    CamFrame frame;

    switch (cam_camera_take_frame(self->setup.camera, &frame)) {
    case CAM_FRAME_READY:
        take(self, &frame);
        return TRUE;
    case CAM_FRAME_SOON:
        if (cam_now() < slot_time(self) + MIN(PATIENCE, interval / 2))
            return FALSE;
        break;
    case CAM_FRAME_NONE:
        break;
    }
    self->missed++;
    return TRUE;
}

static gboolean is_over(CamTimelapse *self, GstClockTime now)
{
    GstClockTime limit = (GstClockTime)self->setup.duration_ms * GST_MSECOND;

    return limit > 0 && now >= self->base + limit;
}

static gboolean on_timer(gpointer data)
{
    CamTimelapse *self = data;
    GstClockTime interval = (GstClockTime)self->setup.interval_ms * GST_MSECOND;
    GstClockTime now = cam_now();

    self->timer = 0;
    if (is_over(self, now)) {
        self->setup.ended(NULL, self->setup.user_data);
        return G_SOURCE_REMOVE;
    }
    if (now >= slot_time(self)) {
        if (!try_slot(self)) {
            self->timer = g_timeout_add(RETRY_MS, on_timer, self);
            return G_SOURCE_REMOVE;
        }
        self->slot++;
        /* The machine slept: what is past is past. */
        if (cam_now() > slot_time(self) + interval)
            self->slot = (cam_now() - self->base) / interval + 1;
    }
    schedule(self);
    return G_SOURCE_REMOVE;
}

static void schedule(CamTimelapse *self)
{
    GstClockTime now = cam_now(), next = slot_time(self);
    GstClockTime limit = (GstClockTime)self->setup.duration_ms * GST_MSECOND;

    if (limit)
        next = MIN(next, self->base + limit);
    self->timer = g_timeout_add(
        next > now ? (guint)((next - now + GST_MSECOND - 1) / GST_MSECOND) : 0, on_timer, self);
}

static CamEncoder *build_encoder(CamTimelapse *self)
{
    static const CamEncoderEvents events = {on_output, on_failed};
    CamEncoder *encoder = NULL;

    for (const char *const *name = cam_encoder_choice_all(self->setup.config.codec);
         *name && !encoder; name++)
        encoder = cam_encoder_new(*name, &self->setup.config, &events, self);
    return encoder;
}

static void end_encoder(gpointer data)
{
    CamTimelapse *self = data;

    cam_encoder_free(self->encoder);
}

static void clear(gpointer data)
{
    CamTimelapse *self = data;

    gst_clear_caps(&self->caps);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->delivered);
}

CamTimelapse *cam_timelapse_new(const CamTimelapseSetup *setup)
{
    CamTimelapse *self = g_new0(CamTimelapse, 1);

    self->setup = *setup;
    self->setup.config.unhurried = TRUE;
    g_mutex_init(&self->lock);
    g_cond_init(&self->delivered);
    self->encoder = build_encoder(self);
    if (!self->encoder) {
        clear(self);
        g_free(self);
        return NULL;
    }
    self->base = cam_now();
    schedule(self);
    return self;
}

void cam_timelapse_pause(CamTimelapse *self, gboolean paused)
{
    if (paused && !self->paused_at) {
        self->paused_at = cam_now();
        g_clear_handle_id(&self->timer, g_source_remove);
    } else if (!paused && self->paused_at) {
        self->base += cam_now() - self->paused_at;
        self->paused_at = 0;
        schedule(self);
    }
}

void cam_timelapse_stop(CamTimelapse *self)
{
    g_clear_handle_id(&self->timer, g_source_remove);
}

void cam_timelapse_free(CamTimelapse *self)
{
    gint64 deadline = g_get_monotonic_time() + DRAIN_US;

    g_mutex_lock(&self->lock);
    while (self->out < self->taken && !self->failed) {
        if (!g_cond_wait_until(&self->delivered, &self->lock, deadline))
            break;
    }
    self->cut_off = TRUE;
    g_mutex_unlock(&self->lock);
    cam_end_apart(end_encoder, self, clear, g_free);
}

guint64 cam_timelapse_missed(CamTimelapse *self)
{
    return self->missed;
}
