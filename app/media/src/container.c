#include "container_private.h"
#include "log.h"

#include <errno.h>

#define QUEUE_SECONDS 4
#define QUEUE_MIN_BYTES (4u << 20)
#define QUEUE_MAX_BYTES (32u << 20)
#define WISHED_QUEUE_MAX_BYTES (128u << 20)

gsize cam_container_queue_bytes(const CamContainerFormat *format)
{
    gsize second = (gsize)format->video.bitrate_kbps * 125;
    gsize usual = CLAMP(second * QUEUE_SECONDS, QUEUE_MIN_BYTES, QUEUE_MAX_BYTES);
    gsize wished = second * (gsize)format->queue_frames / (gsize)MAX(format->video.fps, 1);

    return MAX(usual, MIN(wished, WISHED_QUEUE_MAX_BYTES));
}

static void on_sync_failed(int error_number, gpointer user_data)
{
    cam_container_fail(user_data, error_number == ENOSPC || error_number == EDQUOT,
                       g_strerror(error_number));
}

static void container_free(CamContainer *self)
{
    gst_clear_caps(&self->format.audio_caps);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->changed);
    self->klass->free(self);
}

CamContainer *cam_container_new(const char *path, const CamContainerFormat *format,
                                CamContainerBroken broken, gpointer user_data, int *error_number)
{
    CamContainer *self = format->type == CAM_CONTAINER_MP4 ? cam_mp4_new() : cam_avi_new();

    self->format = *format;
    if (format->audio_caps)
        gst_caps_ref(format->audio_caps);
    self->broken = broken;
    self->user_data = user_data;
    self->queue_bytes = cam_container_queue_bytes(format);
    g_mutex_init(&self->lock);
    g_cond_init(&self->changed);
    self->file = cam_synced_file_new(path, on_sync_failed, self, error_number);
    if (!self->file) {
        container_free(self);
        return NULL;
    }
    self->klass->begin(self, path);
    return self;
}

void cam_container_fail(CamContainer *self, gboolean disk_full, const char *message)
{
    gboolean first;

    g_mutex_lock(&self->lock);
    first = !self->failed;
    self->failed = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    if (first)
        self->broken(disk_full, message, self->user_data);
}

void cam_container_ended(CamContainer *self)
{
    g_mutex_lock(&self->lock);
    self->ended = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
}

static void wait_for_end(CamContainer *self, gint64 timeout_us)
{
    gint64 deadline = g_get_monotonic_time() + timeout_us;

    g_mutex_lock(&self->lock);
    while (!self->ended && !self->failed) {
        if (!g_cond_wait_until(&self->changed, &self->lock, deadline)) {
            cam_log(CAM_LOG_ERROR, "recorder",
                    "the end of a recording could not be written in time");
            break;
        }
    }
    g_mutex_unlock(&self->lock);
}

static gboolean is_full(CamContainer *self, gsize limit)
{
    gsize queued = self->klass->queued(self);

    if (queued < self->queue_bytes)
        self->extra_bytes = 0;
    return queued > limit + self->extra_bytes;
}

gboolean cam_container_push_video(CamContainer *self, GstBuffer *unit)
{
    if (is_full(self, self->queue_bytes)) {
        gst_buffer_unref(unit);
        return FALSE;
    }
    return self->klass->push_video(self, unit);
}

gboolean cam_container_push_audio(CamContainer *self, GstBuffer *unit)
{
    if (is_full(self, self->queue_bytes * 2)) {
        gst_buffer_unref(unit);
        return FALSE;
    }
    return self->klass->push_audio(self, unit);
}

gboolean cam_container_has_room(CamContainer *self)
{
    return !is_full(self, self->queue_bytes / 2);
}

void cam_container_allow(CamContainer *self, gsize bytes)
{
    self->extra_bytes = bytes;
}

gint64 cam_container_size(CamContainer *self)
{
    return cam_synced_file_size(self->file);
}

gint64 cam_container_finish(CamContainer *self, gint64 timeout_us)
{
    gint64 size;

    self->klass->end(self);
    wait_for_end(self, timeout_us);
    self->klass->stop(self);
    size = cam_synced_file_close(self->file);
    container_free(self);
    return size;
}
