#include "recorder_pipeline.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <gst/app/gstappsrc.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAGMENT_MS 500u
/* Fragments reach the kernel as they are written; what a power cut may take is what was not synced
 * since. */
#define SYNC_INTERVAL_US (400 * 1000)
#define EOS_TIMEOUT_US (2000 * 1000)
#define QUEUE_SECONDS 4

struct _CamMp4 {
    char *path;
    int fd;
    GstElement *pipeline;
    GstAppSrc *source;
    guint64 queue_bytes;
    CamMp4Broken broken;
    gpointer user_data;
    GThread *sync_thread;
    GMutex lock;
    GCond changed;
    gboolean ended, failed, stop_syncing;
};

static void sync_directory(const char *path)
{
    g_autofree char *directory = g_path_get_dirname(path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static gpointer sync_loop(gpointer data)
{
    CamMp4 *self = data;

    /* The file's name first: without it a power cut takes all that is synced here. */
    sync_directory(self->path);
    g_mutex_lock(&self->lock);
    while (!self->stop_syncing) {
        gint64 deadline = g_get_monotonic_time() + SYNC_INTERVAL_US;

        while (!self->stop_syncing && g_cond_wait_until(&self->changed, &self->lock, deadline))
            continue;
        g_mutex_unlock(&self->lock);
        fdatasync(self->fd);
        g_mutex_lock(&self->lock);
    }
    g_mutex_unlock(&self->lock);
    return NULL;
}

static void on_error(CamMp4 *self, GstMessage *message)
{
    g_autoptr(GError) error = NULL;
    gboolean first;

    gst_message_parse_error(message, &error, NULL);
    g_mutex_lock(&self->lock);
    first = !self->failed && !self->ended;
    self->failed = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    if (first)
        self->broken(g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT),
                     error->message, self->user_data);
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    CamMp4 *self = user_data;

    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        on_error(self, message);
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        g_mutex_lock(&self->lock);
        self->ended = TRUE;
        g_cond_broadcast(&self->changed);
        g_mutex_unlock(&self->lock);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

static GstCaps *stream_caps(const CamStreamConfig *config)
{
    return gst_caps_new_simple("video/x-h264", "stream-format", G_TYPE_STRING, "byte-stream",
                               "alignment", G_TYPE_STRING, "au", "width", G_TYPE_INT, config->width,
                               "height", G_TYPE_INT, config->height, "framerate", GST_TYPE_FRACTION,
                               config->fps, 1, NULL);
}

/* A time scale that frame durations divide: 1000 units a frame. */
static void set_time_scale(GstElement *mux, GstElement *parse, int fps)
{
    GstPad *pad = gst_element_request_pad_simple(mux, "video_%u");
    GstPad *parsed = gst_element_get_static_pad(parse, "src");

    g_object_set(mux, "movie-timescale", (guint)fps * 1000, NULL);
    g_object_set(pad, "trak-timescale", (guint)fps * 1000, NULL);
    gst_pad_link(parsed, pad);
    gst_object_unref(parsed);
    gst_object_unref(pad);
}

static void build(CamMp4 *self, const CamStreamConfig *config)
{
    GstElement *source = gst_element_factory_make("appsrc", NULL);
    GstElement *parse = gst_element_factory_make("h264parse", NULL);
    GstElement *mux = gst_element_factory_make("mp4mux", NULL);
    GstElement *sink = gst_element_factory_make("filesink", NULL);
    GstCaps *caps = stream_caps(config);
    GstBus *bus;

    self->source = GST_APP_SRC(source);
    g_object_set(source, "format", GST_FORMAT_TIME, "max-bytes", (guint64)0, "caps", caps, NULL);
    gst_caps_unref(caps);
    g_object_set(mux, "fragment-duration", FRAGMENT_MS, NULL);
    g_object_set(sink, "location", self->path, "sync", FALSE, "async", FALSE, NULL);
    gst_util_set_object_arg(G_OBJECT(sink), "buffer-mode", "unbuffered");
    self->pipeline = gst_pipeline_new(NULL);
    gst_bin_add_many(GST_BIN(self->pipeline), source, parse, mux, sink, NULL);
    gst_element_link(source, parse);
    set_time_scale(mux, parse, config->fps);
    gst_element_link(mux, sink);
    cam_pipeline_use_timeline(self->pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    gst_element_set_state(self->pipeline, GST_STATE_PLAYING);
}

CamMp4 *cam_mp4_new(const char *path, const CamStreamConfig *config, CamMp4Broken broken,
                    gpointer user_data, int *error_number)
{
    CamMp4 *self;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);

    if (fd < 0) {
        *error_number = errno;
        return NULL;
    }
    self = g_new0(CamMp4, 1);
    self->path = g_strdup(path);
    self->fd = fd;
    self->broken = broken;
    self->user_data = user_data;
    self->queue_bytes =
        CLAMP((guint64)config->bitrate_kbps * 125 * QUEUE_SECONDS, 4u << 20, 32u << 20);
    g_mutex_init(&self->lock);
    g_cond_init(&self->changed);
    build(self, config);
    self->sync_thread = g_thread_new("file-sync", sync_loop, self);
    return self;
}

gboolean cam_mp4_push(CamMp4 *self, GstBuffer *au)
{
    if (gst_app_src_get_current_level_bytes(self->source) > self->queue_bytes) {
        gst_buffer_unref(au);
        return FALSE;
    }
    return gst_app_src_push_buffer(self->source, au) == GST_FLOW_OK;
}

gboolean cam_mp4_has_room(CamMp4 *self)
{
    return gst_app_src_get_current_level_bytes(self->source) <= self->queue_bytes / 2;
}

gint64 cam_mp4_size(CamMp4 *self)
{
    struct stat info;

    return fstat(self->fd, &info) == 0 ? info.st_size : 0;
}

static void wait_for_end(CamMp4 *self)
{
    gint64 deadline = g_get_monotonic_time() + EOS_TIMEOUT_US;

    gst_app_src_end_of_stream(self->source);
    g_mutex_lock(&self->lock);
    while (!self->ended && !self->failed) {
        if (!g_cond_wait_until(&self->changed, &self->lock, deadline)) {
            cam_log(CAM_LOG_ERROR, "recorder",
                    "the end of a recording could not be written in time");
            break;
        }
    }
    self->stop_syncing = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
}

gint64 cam_mp4_finish(CamMp4 *self)
{
    GstBus *bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    gint64 size;

    wait_for_end(self);
    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
    gst_object_unref(bus);
    gst_clear_object(&self->pipeline);
    g_thread_join(g_steal_pointer(&self->sync_thread));
    if (fsync(self->fd) != 0)
        cam_log(CAM_LOG_ERROR, "recorder", "fsync: %s", g_strerror(errno));
    size = cam_mp4_size(self);
    close(self->fd);
    self->fd = -1;
    sync_directory(self->path);
    return size;
}

void cam_mp4_free(CamMp4 *self)
{
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->changed);
    g_free(self->path);
    g_free(self);
}
