/* The embedded sources: the test picture and, with the same machinery, the "no signal" picture.
 * A thread copies a prepared background and draws on it what changes: 720p30 costs about one per
 * cent of a core. */
#include "log.h"
#include "picture.h"
#include "source.h"

#include <string.h>

#define POOL_BUFFERS 6

typedef struct {
    CamSource base;
    gboolean no_signal;
    guint64 number;
    int fps;
    GstVideoInfo info;
    GstCaps *caps;
    GstBufferPool *pool;
    guint8 *background;
    GThread *thread;
    GMutex lock;
    GCond wake;
    gboolean stopping;
} CamTestSource;

static GstBuffer *get_buffer(CamTestSource *self)
{
    GstBufferPoolAcquireParams params = {.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};
    GstBuffer *buffer = NULL;

    /* The pool is small so that one slow moment does not pin a second of frames for ever; beyond
     * it the frames are allocated and freed singly. */
    if (gst_buffer_pool_acquire_buffer(self->pool, &buffer, &params) != GST_FLOW_OK)
        buffer = gst_buffer_new_allocate(NULL, GST_VIDEO_INFO_SIZE(&self->info), NULL);
    return buffer;
}

static void produce(CamTestSource *self, GstClockTime pts)
{
    GstBuffer *buffer = get_buffer(self);
    GstMapInfo map;
    CamImage image;

    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    image = cam_image_of(map.data, &self->info);
    if (self->no_signal) {
        cam_picture_no_signal(&image, cam_wall_ms(pts));
    } else {
        memcpy(map.data, self->background, GST_VIDEO_INFO_SIZE(&self->info));
        cam_picture_test_frame(&image, (guint32)self->number, cam_wall_ms(pts));
    }
    gst_buffer_unmap(buffer, &map);
    self->base.events->raw(self->base.owner, buffer, self->caps, pts, self->number);
    if (!self->no_signal)
        self->number++;
}

/* FALSE when the source is to stop. */
static gboolean sleep_until(CamTestSource *self, GstClockTime when)
{
    gboolean stopping;

    g_mutex_lock(&self->lock);
    while (!self->stopping && cam_now() < when)
        g_cond_wait_until(&self->wake, &self->lock, (gint64)(when / 1000) + 1);
    stopping = self->stopping;
    g_mutex_unlock(&self->lock);
    return !stopping;
}

static gpointer run(gpointer data)
{
    CamTestSource *self = data;
    GstClockTime start = cam_now();
    CamSourceInfo info = {.format = "I420",
                          .width = GST_VIDEO_INFO_WIDTH(&self->info),
                          .height = GST_VIDEO_INFO_HEIGHT(&self->info),
                          .fps = self->fps};

    self->base.events->started(self->base.owner, &info);
    for (guint64 n = 0;; n++) {
        GstClockTime pts = start + gst_util_uint64_scale(n, GST_SECOND, (guint64)self->fps);

        if (!sleep_until(self, pts))
            return NULL;
        /* Short delays are caught up frame by frame; after a long one (a suspended machine) the
         * past stays past. */
        if (cam_now() > pts + GST_SECOND) {
            start = cam_now();
            n = 0;
            pts = start;
        }
        produce(self, pts);
    }
}

static void test_free(CamSource *source)
{
    CamTestSource *self = (CamTestSource *)source;

    g_mutex_lock(&self->lock);
    self->stopping = TRUE;
    g_cond_signal(&self->wake);
    g_mutex_unlock(&self->lock);
    g_thread_join(self->thread);
    gst_buffer_pool_set_active(self->pool, FALSE);
    gst_object_unref(self->pool);
    gst_caps_unref(self->caps);
    g_free(self->background);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->wake);
    g_free(self);
}

static const CamSourceClass test_class = {.free = test_free};

static CamSource *picture_source_new(const CamSourceSetup *setup, gboolean no_signal, int fps)
{
    CamTestSource *self = g_new0(CamTestSource, 1);
    GstStructure *config;
    guint size;

    self->base = (CamSource){&test_class, setup->events, setup->owner};
    self->no_signal = no_signal;
    self->number = no_signal ? 0 : setup->first_number;
    self->fps = fps;
    g_mutex_init(&self->lock);
    g_cond_init(&self->wake);
    gst_video_info_set_format(&self->info, GST_VIDEO_FORMAT_I420, (guint)setup->mode.width,
                              (guint)setup->mode.height);
    GST_VIDEO_INFO_FPS_N(&self->info) = fps;
    GST_VIDEO_INFO_FPS_D(&self->info) = 1;
    self->caps = gst_video_info_to_caps(&self->info);
    size = (guint)GST_VIDEO_INFO_SIZE(&self->info);
    self->pool = gst_buffer_pool_new();
    config = gst_buffer_pool_get_config(self->pool);
    gst_buffer_pool_config_set_params(config, self->caps, size, 0, POOL_BUFFERS);
    gst_buffer_pool_set_config(self->pool, config);
    gst_buffer_pool_set_active(self->pool, TRUE);
    if (!no_signal) {
        CamImage image;

        self->background = g_malloc0(size);
        image = cam_image_of(self->background, &self->info);
        cam_picture_test_background(&image);
    }
    self->thread = g_thread_new(no_signal ? "no-signal" : "test-source", run, self);
    return &self->base;
}

CamSource *cam_source_test_new(const CamSourceSetup *setup)
{
    return picture_source_new(setup, FALSE, setup->mode.fps);
}

CamSource *cam_source_no_signal_new(const CamSourceSetup *setup)
{
    return picture_source_new(setup, TRUE, MIN(5, setup->mode.fps));
}
