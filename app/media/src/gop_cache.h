/* The access units since the last key frame, for streams whose encoder cannot be asked for one. */
#pragma once

#include <gst/gst.h>

typedef struct _CamGopCache CamGopCache;

typedef void (*CamGopCacheFunc)(GstBuffer *au, gpointer user_data);

CamGopCache *cam_gop_cache_new(gsize max_bytes);
void cam_gop_cache_free(CamGopCache *cache);
void cam_gop_cache_clear(CamGopCache *cache);

/* A group that outgrows the limit is forgotten up to its end: half a group is no use. */
void cam_gop_cache_push(CamGopCache *cache, GstBuffer *au);

/* Calls FUNC for each unit from the key frame on; FALSE when there is none. */
gboolean cam_gop_cache_replay(CamGopCache *cache, CamGopCacheFunc func, gpointer user_data);
