/* What a hub keeps of its past, and who keeps the hub. */
#include "stream_private.h"

gboolean cam_hub_is_wanted_locked(CamHub *hub)
{
    return hub->consumers->len > 0 || hub->ring;
}

gboolean cam_hub_is_wanted(CamHub *hub)
{
    gboolean wanted;

    g_mutex_lock(&hub->lock);
    wanted = cam_hub_is_wanted_locked(hub);
    g_mutex_unlock(&hub->lock);
    return wanted;
}

void cam_hub_keep(CamHub *hub, gsize bytes)
{
    gboolean idle, wanted;

    g_mutex_lock(&hub->lock);
    wanted = cam_hub_is_wanted_locked(hub);
    if (bytes == 0)
        g_clear_pointer(&hub->ring, cam_ring_free);
    else if (hub->ring)
        cam_ring_set_max(hub->ring, bytes);
    else
        hub->ring = cam_ring_new(bytes);
    idle = !cam_hub_is_wanted_locked(hub);
    if (idle)
        hub->idle_since = cam_now();
    else if (!wanted && hub->demand)
        hub->demand(hub->demand_data);
    g_mutex_unlock(&hub->lock);
    if (idle && wanted)
        cam_hub_linger(hub);
    else if (!idle)
        cam_hub_begin_encoder(hub);
}

gboolean cam_hub_keeps(CamHub *hub)
{
    gboolean keeps;

    g_mutex_lock(&hub->lock);
    keeps = hub->ring != NULL;
    g_mutex_unlock(&hub->lock);
    return keeps;
}

gsize cam_hub_kept(CamHub *hub)
{
    gsize bytes;

    g_mutex_lock(&hub->lock);
    bytes = hub->ring ? cam_ring_bytes(hub->ring) : 0;
    g_mutex_unlock(&hub->lock);
    return bytes;
}

guint cam_hub_consumers(CamHub *hub)
{
    guint n;

    g_mutex_lock(&hub->lock);
    n = hub->consumers->len;
    g_mutex_unlock(&hub->lock);
    return n;
}

void cam_hub_hold(CamHub *hub)
{
    hub->holders++;
}

gboolean cam_hub_release(CamHub *hub)
{
    return --hub->holders == 0;
}
