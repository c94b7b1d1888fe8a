/* A hub's life: its encoder comes with the first consumer and goes some time after the last. */
#include "stream_private.h"

/* Forced key frames are expensive for everyone who watches; requests in between are not lost, they
 * wait. */
#define KEY_INTERVAL (150 * GST_MSECOND)
#define LINGER_MS 2000
#define GOP_CACHE_BYTES (8 * 1024 * 1024)

CamHub *cam_hub_new(const CamStreamConfig *config, void (*demand)(gpointer), gpointer demand_data)
{
    CamHub *hub = g_new0(CamHub, 1);

    g_atomic_ref_count_init(&hub->refs);
    g_mutex_init(&hub->build_lock);
    g_mutex_init(&hub->lock);
    hub->config = *config;
    hub->consumers = g_ptr_array_new_with_free_func(g_free);
    hub->gop = cam_gop_cache_new(GOP_CACHE_BYTES);
    hub->demand = demand;
    hub->demand_data = demand_data;
    hub->slot_base = GST_CLOCK_TIME_NONE;
    return hub;
}

CamHub *cam_hub_ref(CamHub *hub)
{
    g_atomic_ref_count_inc(&hub->refs);
    return hub;
}

void cam_hub_unref(CamHub *hub)
{
    if (!g_atomic_ref_count_dec(&hub->refs))
        return;
    g_clear_pointer(&hub->encoder, cam_encoder_free);
    cam_gop_cache_free(hub->gop);
    g_clear_pointer(&hub->ring, cam_ring_free);
    g_ptr_array_unref(hub->consumers);
    g_mutex_clear(&hub->build_lock);
    g_mutex_clear(&hub->lock);
    g_free(hub);
}

CamStreamConfig cam_hub_config(CamHub *hub)
{
    CamStreamConfig config;

    g_mutex_lock(&hub->lock);
    config = hub->config;
    g_mutex_unlock(&hub->lock);
    return config;
}

/* With lock held: every consumer starts anew at a key frame. */
static void restart_consumers(CamHub *hub)
{
    for (guint i = 0; i < hub->consumers->len; i++) {
        CamConsumer *consumer = hub->consumers->pdata[i];

        consumer->need_key = TRUE;
    }
}

static void rebuild(CamHub *hub)
{
    g_mutex_lock(&hub->build_lock);
    cam_hub_end_encoder(hub);
    g_mutex_lock(&hub->lock);
    restart_consumers(hub);
    cam_gop_cache_clear(hub->gop);
    if (hub->ring)
        cam_ring_clear(hub->ring);
    hub->slot_base = GST_CLOCK_TIME_NONE;
    g_mutex_unlock(&hub->lock);
    g_mutex_unlock(&hub->build_lock);
    cam_hub_begin_encoder(hub);
}

void cam_hub_set_config(CamHub *hub, const CamStreamConfig *config)
{
    gboolean changed;

    g_mutex_lock(&hub->lock);
    changed = !cam_stream_config_same_encoding(&hub->config, config);
    if (changed)
        hub->config = *config;
    hub->config.with_audio = config->with_audio;
    hub->config.audio = config->audio;
    g_mutex_unlock(&hub->lock);
    if (changed)
        rebuild(hub);
}

void cam_hub_set_source_fps(CamHub *hub, int fps)
{
    g_mutex_lock(&hub->lock);
    if (hub->source_fps != fps)
        hub->slot_base = GST_CLOCK_TIME_NONE;
    hub->source_fps = fps;
    g_mutex_unlock(&hub->lock);
}

void cam_hub_set_passthrough(CamHub *hub, gboolean passthrough)
{
    gboolean changed;

    g_mutex_lock(&hub->lock);
    changed = hub->passthrough != passthrough;
    hub->passthrough = passthrough;
    g_mutex_unlock(&hub->lock);
    if (changed)
        rebuild(hub);
}

gboolean cam_hub_is_passthrough(CamHub *hub)
{
    gboolean passthrough;

    g_mutex_lock(&hub->lock);
    passthrough = hub->passthrough;
    g_mutex_unlock(&hub->lock);
    return passthrough;
}

void cam_hub_close(CamHub *hub)
{
    g_mutex_lock(&hub->build_lock);
    g_mutex_lock(&hub->lock);
    hub->closed = TRUE;
    hub->demand = NULL;
    g_mutex_unlock(&hub->lock);
    cam_hub_end_encoder(hub);
    g_mutex_unlock(&hub->build_lock);
}

static gboolean linger_over(gpointer data)
{
    CamHub *hub = data;
    gboolean idle;

    g_mutex_lock(&hub->build_lock);
    g_mutex_lock(&hub->lock);
    idle = !cam_hub_is_wanted_locked(hub) && cam_now() - hub->idle_since >= LINGER_MS * GST_MSECOND;
    g_mutex_unlock(&hub->lock);
    if (idle)
        cam_hub_end_encoder(hub);
    g_mutex_unlock(&hub->build_lock);
    return G_SOURCE_REMOVE;
}

void cam_hub_linger(CamHub *hub)
{
    g_timeout_add_full(G_PRIORITY_DEFAULT, LINGER_MS + 10, linger_over, cam_hub_ref(hub),
                       (GDestroyNotify)cam_hub_unref);
}

guint cam_hub_attach(CamHub *hub, const CamHubConsumer *calls)
{
    CamConsumer *consumer = g_new0(CamConsumer, 1);
    guint id;

    consumer->calls = *calls;
    consumer->need_key = TRUE;
    g_mutex_lock(&hub->lock);
    id = consumer->id = ++hub->next_id;
    g_ptr_array_add(hub->consumers, consumer);
    if (calls->past > 0)
        cam_hub_replay_past(hub, consumer);
    if (hub->passthrough)
        cam_hub_replay(hub, consumer);
    else if (consumer->need_key)
        hub->key_wanted = TRUE;
    if (hub->consumers->len == 1 && hub->demand)
        hub->demand(hub->demand_data);
    g_mutex_unlock(&hub->lock);
    cam_hub_begin_encoder(hub);
    return id;
}

static CamConsumer *find_consumer(CamHub *hub, guint id)
{
    for (guint i = 0; i < hub->consumers->len; i++) {
        CamConsumer *consumer = hub->consumers->pdata[i];

        if (consumer->id == id)
            return consumer;
    }
    return NULL;
}

void cam_hub_detach(CamHub *hub, guint id)
{
    gboolean last;

    g_mutex_lock(&hub->lock);
    g_ptr_array_remove_fast(hub->consumers, find_consumer(hub, id));
    last = !cam_hub_is_wanted_locked(hub);
    if (last)
        hub->idle_since = cam_now();
    g_mutex_unlock(&hub->lock);
    if (last)
        cam_hub_linger(hub);
}

guint64 cam_hub_consumer_dropped(CamHub *hub, guint id)
{
    CamConsumer *consumer;
    guint64 dropped;

    g_mutex_lock(&hub->lock);
    consumer = find_consumer(hub, id);
    dropped = consumer ? consumer->dropped : 0;
    g_mutex_unlock(&hub->lock);
    return dropped;
}

/* With lock held: the picture at PTS is one of the stream's. */
static gboolean keep_frame(CamHub *hub, GstClockTime pts)
{
    guint64 slot;

    if (hub->source_fps <= hub->config.fps)
        return TRUE;
    if (!GST_CLOCK_TIME_IS_VALID(hub->slot_base) || pts < hub->slot_base) {
        hub->slot_base = pts;
        hub->next_slot = 0;
    }
    /* A quarter of a slot of tolerance for frames that come early. */
    slot = gst_util_uint64_scale(pts - hub->slot_base + GST_SECOND / 4 / (guint64)hub->config.fps,
                                 (guint64)hub->config.fps, GST_SECOND);
    if (slot < hub->next_slot)
        return FALSE;
    hub->next_slot = slot + 1;
    return TRUE;
}

void cam_hub_push_raw(CamHub *hub, GstBuffer *buffer, GstCaps *caps, GstClockTime pts)
{
    g_mutex_lock(&hub->lock);
    if (hub->encoder && !hub->passthrough && pts > hub->last_pts && keep_frame(hub, pts)) {
        if (hub->key_wanted && pts >= hub->last_key + KEY_INTERVAL) {
            hub->key_wanted = FALSE;
            hub->last_key = pts;
            hub->stats.key_frames_forced++;
            cam_encoder_force_key(hub->encoder);
        }
        cam_hub_watch_encoder(hub);
        if (cam_encoder_push(hub->encoder, buffer, caps, pts))
            hub->last_pts = pts;
        else
            hub->stats.frames_dropped++;
        if (!*hub->config.colorimetry)
            g_strlcpy(hub->config.colorimetry, cam_encoder_colorimetry(hub->encoder),
                      sizeof(hub->config.colorimetry));
    }
    g_mutex_unlock(&hub->lock);
}

void cam_hub_push_encoded(CamHub *hub, GstBuffer *au)
{
    g_mutex_lock(&hub->lock);
    if (hub->passthrough && !hub->closed) {
        cam_gop_cache_push(hub->gop, au);
        if (cam_hub_is_wanted_locked(hub))
            cam_hub_deliver(hub, au);
    }
    g_mutex_unlock(&hub->lock);
}
