/* The way out of a hub: access units to its consumers, and the counting. */
#include "stream_private.h"

/* With lock held. */
static void hand_over(CamHub *hub, CamConsumer *consumer, GstBuffer *au)
{
    consumer->need_key = FALSE;
    /* A copy of the header only: consumers retime it, the memory is shared. */
    if (consumer->calls.deliver(gst_buffer_copy(au), consumer->calls.user_data)) {
        if (consumer->calls.wants_key && consumer->calls.wants_key(consumer->calls.user_data))
            hub->key_wanted = TRUE;
        consumer->last_pts = GST_BUFFER_PTS(au);
        return;
    }
    consumer->need_key = TRUE;
    consumer->overflowed = TRUE;
    consumer->dropped++;
}

typedef struct {
    CamHub *hub;
    CamConsumer *consumer;
} Replay;

static void replay_unit(GstBuffer *au, gpointer user_data)
{
    Replay *replay = user_data;
    CamConsumer *consumer = replay->consumer;

    if (consumer->overflowed || GST_BUFFER_PTS(au) <= consumer->last_pts)
        return;
    /* What was left out since its last unit comes now after all. */
    if (consumer->dropped > 0)
        consumer->dropped--;
    hand_over(replay->hub, consumer, au);
}

/* A camera's own encoder cannot be asked for a key frame, so what there is since
 * its last one is handed out again; to one who has the beginning of it, the rest. */
void cam_hub_replay(CamHub *hub, CamConsumer *consumer)
{
    cam_gop_cache_replay(hub->gop, replay_unit, &(Replay){hub, consumer});
}

void cam_hub_replay_past(CamHub *hub, CamConsumer *consumer)
{
    if (hub->ring)
        cam_ring_replay(hub->ring, consumer->calls.past, replay_unit, &(Replay){hub, consumer});
}

/* With lock held. */
static void deliver_to(CamHub *hub, CamConsumer *consumer, GstBuffer *au)
{
    gboolean key = !GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT);

    if (consumer->overflowed && consumer->calls.ready(consumer->calls.user_data)) {
        consumer->overflowed = FALSE;
        hub->key_wanted = TRUE;
        if (hub->passthrough)
            cam_hub_replay(hub, consumer); /* with this unit as its last */
    }
    if (consumer->last_pts >= GST_BUFFER_PTS(au))
        return;
    if (consumer->overflowed || (consumer->need_key && !key)) {
        /* Waiting for the very first key frame is no loss. */
        if (consumer->last_pts > 0)
            consumer->dropped++;
        return;
    }
    hand_over(hub, consumer, au);
}

/* With lock held. */
static void count(CamHub *hub, GstBuffer *au)
{
    CamHubStats *stats = &hub->stats;
    GstClockTime elapsed = cam_now() - stats->window_start;

    stats->frames_encoded++;
    stats->bytes += gst_buffer_get_size(au);
    stats->window_bytes += gst_buffer_get_size(au);
    if (elapsed < GST_SECOND)
        return;
    stats->bitrate_kbps = (int)(stats->window_bytes * 8 * GST_MSECOND / elapsed);
    stats->measured = elapsed < 3 * GST_SECOND;
    stats->encode_time_us = 0;
    if (hub->encoder) {
        guint64 total;
        guint frames;

        cam_encoder_take_times(hub->encoder, &total, &frames);
        stats->encode_time_us = frames ? (int)(total / frames) : 0;
    }
    stats->window_bytes = 0;
    stats->window_start = cam_now();
}

/* With lock held: a key frame serves all who wait for one, forced or not. */
static void restart_point(CamHub *hub, GstClockTime pts)
{
    hub->last_key = MAX(hub->last_key, pts);
    hub->key_wanted = FALSE;
}

void cam_hub_deliver(CamHub *hub, GstBuffer *au)
{
    if (GST_BUFFER_PTS(au) <= hub->last_au_pts)
        return;
    hub->last_au_pts = GST_BUFFER_PTS(au);
    if (!GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT))
        restart_point(hub, GST_BUFFER_PTS(au));
    count(hub, au);
    if (hub->ring)
        cam_ring_push(hub->ring, au);
    for (guint i = 0; i < hub->consumers->len; i++)
        deliver_to(hub, hub->consumers->pdata[i], au);
}

JsonObject *cam_hub_stats(CamHub *hub)
{
    JsonObject *object = json_object_new();
    CamHubStats *stats = &hub->stats;
    gboolean measured;

    g_mutex_lock(&hub->lock);
    measured = stats->measured && cam_now() - stats->window_start < 3 * GST_SECOND;
    json_object_set_string_member(object, "name", hub->config.name);
    json_object_set_int_member(object, "width", hub->config.width);
    json_object_set_int_member(object, "height", hub->config.height);
    json_object_set_int_member(object, "fps", hub->config.fps);
    cam_json_set_string(object, "encoder", hub->encoder ? cam_hub_encoder_name(hub) : NULL);
    json_object_set_boolean_member(object, "passthrough", hub->passthrough);
    json_object_set_int_member(object, "consumers", hub->consumers->len);
    json_object_set_int_member(object, "frames_encoded", (gint64)stats->frames_encoded);
    json_object_set_int_member(object, "frames_dropped", (gint64)stats->frames_dropped);
    json_object_set_int_member(object, "bytes", (gint64)stats->bytes);
    cam_json_set_int_or_null(object, "bitrate_kbps", measured, stats->bitrate_kbps);
    cam_json_set_int_or_null(object, "encode_time_us", measured && hub->encoder,
                             stats->encode_time_us);
    json_object_set_int_member(object, "key_frames_forced", (gint64)stats->key_frames_forced);
    g_mutex_unlock(&hub->lock);
    return object;
}
