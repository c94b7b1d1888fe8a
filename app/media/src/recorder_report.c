/* What a recorder tells of itself. */
#include "events.h"
#include "recorder_private.h"

static gint64 rounded_ms(GstClockTime time)
{
    return (gint64)((time + GST_MSECOND / 2) / GST_MSECOND);
}

/* With lock held. */
static gint64 duration_ms(CamRecorder *self)
{
    return self->closed_ms + (self->part ? rounded_ms(self->part->end) : 0);
}

gint64 cam_recorder_duration_ms(CamRecorder *self)
{
    gint64 duration;

    g_mutex_lock(&self->lock);
    duration = duration_ms(self);
    g_mutex_unlock(&self->lock);
    return duration;
}

gint64 cam_recorder_pre_roll_ms(CamRecorder *self)
{
    gint64 pre_roll;

    g_mutex_lock(&self->lock);
    pre_roll = rounded_ms(self->pre_roll);
    g_mutex_unlock(&self->lock);
    return pre_roll;
}

void cam_recorder_tell_began(CamRecorder *self, GstClockTime at)
{
    JsonObject *object = json_object_new();
    GstClockTime now = cam_now();

    /* The times of a timelapse are those at which it is shown: its first picture is of now. */
    if (self->timelapse || at > now)
        at = now;
    json_object_set_int_member(object, "id", self->id);
    json_object_set_int_member(object, "age_ms", rounded_ms(now - at));
    cam_event_emit("recorder.began", object);
}

/* With lock held. */
static void add_result(CamRecorder *self, JsonObject *object)
{
    gint64 size = self->closed_bytes;

    if (self->part)
        size += cam_container_size(self->part->container);
    json_object_set_int_member(object, "duration_ms", duration_ms(self));
    json_object_set_int_member(object, "size_bytes", size);
    json_object_set_int_member(object, "frames", (gint64)self->frames);
}

void cam_recorder_result(CamRecorder *self, JsonObject *object)
{
    g_mutex_lock(&self->lock);
    add_result(self, object);
    g_mutex_unlock(&self->lock);
}

static guint64 dropped(CamRecorder *self)
{
    guint64 n = self->dropped_before + self->missed;

    if (self->consumer)
        n += cam_hub_consumer_dropped(self->hub, self->consumer);
    if (self->timelapse && !self->ending)
        n += cam_timelapse_missed(self->timelapse);
    return n;
}

JsonObject *cam_recorder_stats(CamRecorder *self)
{
    JsonObject *object = json_object_new();
    guint64 before = dropped(self);

    g_mutex_lock(&self->lock);
    json_object_set_int_member(object, "id", self->id);
    json_object_set_int_member(object, "camera", cam_camera_id(self->camera));
    json_object_set_string_member(object, "mode", cam_recording_mode_name(self->spec.mode));
    json_object_set_boolean_member(object, "paused", self->paused);
    json_object_set_int_member(object, "part", self->parts);
    json_object_set_int_member(object, "pre_roll_ms", rounded_ms(self->pre_roll));
    add_result(self, object);
    json_object_set_int_member(object, "frames_dropped", (gint64)(before + self->dropped));
    g_mutex_unlock(&self->lock);
    return object;
}
