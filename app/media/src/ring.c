#include "ring.h"

struct _CamRing {
    GQueue units;
    gsize bytes, max_bytes;
};

CamRing *cam_ring_new(gsize max_bytes)
{
    CamRing *ring = g_new0(CamRing, 1);

    g_queue_init(&ring->units);
    ring->max_bytes = max_bytes;
    return ring;
}

void cam_ring_clear(CamRing *ring)
{
    g_queue_clear_full(&ring->units, (GDestroyNotify)gst_buffer_unref);
    ring->bytes = 0;
}

void cam_ring_free(CamRing *ring)
{
    cam_ring_clear(ring);
    g_free(ring);
}

static gboolean begins_group(GstBuffer *unit)
{
    return !GST_BUFFER_FLAG_IS_SET(unit, GST_BUFFER_FLAG_DELTA_UNIT);
}

static void drop_oldest_group(CamRing *ring)
{
    do {
        GstBuffer *unit = g_queue_pop_head(&ring->units);

        ring->bytes -= gst_buffer_get_size(unit);
        gst_buffer_unref(unit);
    } while (!g_queue_is_empty(&ring->units) && !begins_group(g_queue_peek_head(&ring->units)));
}

static void make_fit(CamRing *ring)
{
    while (ring->bytes > ring->max_bytes)
        drop_oldest_group(ring);
}

void cam_ring_set_max(CamRing *ring, gsize max_bytes)
{
    ring->max_bytes = max_bytes;
    make_fit(ring);
}

void cam_ring_push(CamRing *ring, GstBuffer *unit)
{
    if (g_queue_is_empty(&ring->units) && !begins_group(unit))
        return;
    g_queue_push_tail(&ring->units, gst_buffer_ref(unit));
    ring->bytes += gst_buffer_get_size(unit);
    make_fit(ring);
}

gboolean cam_ring_replay(CamRing *ring, GstClockTime from, CamRingFunc func, gpointer user_data)
{
    gboolean found = FALSE;

    for (GList *l = ring->units.head; l; l = l->next) {
        found = found || (begins_group(l->data) && GST_BUFFER_PTS(l->data) >= from);
        if (found)
            func(l->data, user_data);
    }
    return found;
}

gsize cam_ring_bytes(CamRing *ring)
{
    return ring->bytes;
}
