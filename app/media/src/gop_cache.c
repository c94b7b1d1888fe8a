#include "gop_cache.h"

struct _CamGopCache {
    GQueue units;
    gsize bytes, max_bytes;
};

CamGopCache *cam_gop_cache_new(gsize max_bytes)
{
    CamGopCache *cache = g_new0(CamGopCache, 1);

    g_queue_init(&cache->units);
    cache->max_bytes = max_bytes;
    return cache;
}

void cam_gop_cache_clear(CamGopCache *cache)
{
    g_queue_clear_full(&cache->units, (GDestroyNotify)gst_buffer_unref);
    cache->bytes = 0;
}

void cam_gop_cache_free(CamGopCache *cache)
{
    cam_gop_cache_clear(cache);
    g_free(cache);
}

void cam_gop_cache_push(CamGopCache *cache, GstBuffer *au)
{
    if (!GST_BUFFER_FLAG_IS_SET(au, GST_BUFFER_FLAG_DELTA_UNIT))
        cam_gop_cache_clear(cache);
    else if (g_queue_is_empty(&cache->units))
        return;
    cache->bytes += gst_buffer_get_size(au);
    if (cache->bytes > cache->max_bytes)
        cam_gop_cache_clear(cache);
    else
        g_queue_push_tail(&cache->units, gst_buffer_ref(au));
}

gboolean cam_gop_cache_replay(CamGopCache *cache, CamGopCacheFunc func, gpointer user_data)
{
    for (GList *l = cache->units.head; l; l = l->next)
        func(l->data, user_data);
    return !g_queue_is_empty(&cache->units);
}
