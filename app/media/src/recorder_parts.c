/* The files of a recording, one after the other. The next is opened in advance and the old one
 * finished behind its back, each on a thread of its own, so that no picture waits for the disk. */
#include "events.h"
#include "log.h"
#include "recorder_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More would only pile up on a disk that does not keep up. */
#define MAX_UNFINISHED 4
#define LAST_PART_US (2000 * 1000)
#define OTHER_PARTS_US (20 * 1000 * 1000)
/* The file is opened that long before the limit, and within the last of it any key frame is good.
 */
#define AHEAD (1500 * GST_MSECOND)
#define WINDOW (400 * GST_MSECOND)
/* A key frame that is asked for comes some pictures later. */
#define KEY_DELAY_FRAMES 3

static char *part_path(const char *path, guint index)
{
    const char *name = strrchr(path, '/') + 1, *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? (size_t)(dot - path) : strlen(path));

    return index == 1 ? g_strdup(path)
                      : g_strdup_printf("%.*s.part%u%s", stem, path, index, path + stem);
}

static void on_broken(gboolean disk_full, const char *message, gpointer user_data)
{
    cam_recorder_request_end(user_data, disk_full ? CAM_END_DISK_FULL : CAM_END_ERROR, message);
}

static void part_free(CamPart *part)
{
    g_free(part->path);
    g_free(part);
}

CamPart *cam_recorder_open_part(CamRecorder *self, guint index, int *error_number)
{
    CamPart *part = g_new0(CamPart, 1);

    part->recorder = self;
    part->index = index;
    part->path = part_path(self->path, index);
    part->container = cam_container_new(part->path, &self->format, on_broken, self, error_number);
    if (!part->container)
        g_clear_pointer(&part, part_free);
    return part;
}

static gpointer open_thread(gpointer data)
{
    CamRecorder *self = data;
    int number = 0;
    CamPart *part = cam_recorder_open_part(self, self->parts + 1, &number);

    if (!part) {
        g_autofree char *message =
            g_strdup_printf("the next part cannot be made: %s", g_strerror(number));

        cam_recorder_request_end(
            self, number == ENOSPC || number == EDQUOT ? CAM_END_DISK_FULL : CAM_END_ERROR,
            message);
    }
    g_mutex_lock(&self->lock);
    self->next = part;
    self->opening = FALSE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    return NULL;
}

static GstClockTime frame_time(CamRecorder *self)
{
    return GST_SECOND / (guint64)self->format.video.fps;
}

/* How much of the running part is left, in media time; the bytes at the encoder's nominal rate. */
static GstClockTime time_left(CamRecorder *self)
{
    GstClockTime left = GST_CLOCK_TIME_NONE, limit = (GstClockTime)self->spec.part_max_ms;
    guint64 max_bytes = (guint64)self->spec.part_max_bytes;

    limit *= GST_MSECOND;
    if (limit)
        left = limit > self->part->end ? limit - self->part->end : 0;
    if (max_bytes) {
        /* Room for what the container adds, and for a key frame or two above the average. */
        guint64 used = self->part->bytes + max_bytes / 32, rate;

        rate = self->part->end > 2 * GST_SECOND
                   ? gst_util_uint64_scale(self->part->bytes, GST_SECOND, self->part->end)
                   : 0;
        rate = MAX(rate, (guint64)self->config.bitrate_kbps * 125);
        left = MIN(
            left, max_bytes > used ? gst_util_uint64_scale(max_bytes - used, GST_SECOND, rate) : 0);
    }
    return left;
}

static GstClockTime window(CamRecorder *self)
{
    return MAX(WINDOW, KEY_DELAY_FRAMES * frame_time(self));
}

gboolean cam_recorder_part_due(CamRecorder *self)
{
    return self->next && self->part->frames > 0 && time_left(self) <= window(self);
}

void cam_recorder_check_part(CamRecorder *self)
{
    GstClockTime left = time_left(self);

    if (left > AHEAD + window(self))
        return;
    if (!self->next && !self->opening && self->unfinished < MAX_UNFINISHED && !self->full) {
        self->opening = TRUE;
        g_thread_unref(g_thread_new("next-part", open_thread, self));
    }
    self->key_wanted = self->next && left <= KEY_DELAY_FRAMES * frame_time(self);
}

static gint64 rounded_ms(GstClockTime time)
{
    return (gint64)((time + GST_MSECOND / 2) / GST_MSECOND);
}

void cam_recorder_close_part(CamRecorder *self)
{
    CamPart *part = g_steal_pointer(&self->part);

    part->closed = TRUE;
    part->size_at_close = cam_container_size(part->container);
    self->closed_ms += rounded_ms(part->end);
    self->closed_bytes += part->size_at_close;
    self->unfinished++;
    cam_recorder_finish_if_complete(part);
}

void cam_recorder_change_part(CamRecorder *self)
{
    cam_recorder_close_span(self);
    cam_recorder_close_part(self);
    self->part = g_steal_pointer(&self->next);
    self->parts = self->part->index;
    self->key_wanted = FALSE;
}

void cam_recorder_finish_if_complete(CamPart *part)
{
    if (part->closed && part->open_spans == 0)
        g_thread_pool_push(part->recorder->finisher, part, NULL);
}

static void emit_part(CamPart *part, gint64 size)
{
    JsonObject *object = json_object_new();

    json_object_set_int_member(object, "id", part->recorder->id);
    json_object_set_int_member(object, "index", part->index);
    json_object_set_string_member(object, "path", part->path);
    json_object_set_int_member(object, "duration_ms", rounded_ms(part->end));
    json_object_set_int_member(object, "size_bytes", size);
    json_object_set_int_member(object, "frames", (gint64)part->frames);
    cam_event_emit("recorder.part", object);
}

void cam_recorder_finish_part(gpointer data, gpointer unused)
{
    CamPart *part = data;
    CamRecorder *self = part->recorder;
    gint64 size;
    gboolean last;

    g_mutex_lock(&self->lock);
    last = self->sound_over;
    g_mutex_unlock(&self->lock);
    size = cam_container_finish(part->container, last ? LAST_PART_US : OTHER_PARTS_US);
    emit_part(part, size);
    g_mutex_lock(&self->lock);
    self->closed_bytes += size - part->size_at_close;
    self->unfinished--;
    g_mutex_unlock(&self->lock);
    part_free(part);
}

void cam_recorder_wait_for_parts(CamRecorder *self)
{
    g_mutex_lock(&self->lock);
    while (self->opening)
        g_cond_wait(&self->changed, &self->lock);
    g_mutex_unlock(&self->lock);
    g_thread_pool_free(g_steal_pointer(&self->finisher), FALSE, TRUE);
    if (self->next) {
        cam_container_finish(self->next->container, LAST_PART_US);
        if (unlink(self->next->path) != 0)
            cam_log(CAM_LOG_ERROR, "recorder", "%s: %s", self->next->path, g_strerror(errno));
        g_clear_pointer(&self->next, part_free);
    }
}
