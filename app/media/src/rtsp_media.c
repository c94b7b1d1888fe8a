#include "rtsp_media.h"
#include "log.h"
#include "rtsp_playback_media.h"
#include "rtsp_sound.h"

#include <gst/app/gstappsrc.h>
#include <string.h>

#define DATA_KEY "cam-media"
#define QUEUE_MIN_BYTES (1u << 20)
#define QUEUE_MAX_BYTES (4u << 20)

/* One client's share of a hub and a sound. */
typedef struct {
    CamHub *hub;
    guint consumer;      /* atomic; 0: none, for the client does not take the pictures now */
    guint64 dropped;     /* by the consumers before */
    CamRtspSound *sound; /* NULL: none */
    GstAppSrc *source;
    guint64 max_bytes;
    guint max_buffers;
    GstRTSPLowerTrans protocols;
    gint playing;         /* atomic */
    gint64 playing_since; /* µs */
    gint64 stuck_since;   /* µs, 0: not; the consumer's, under the hub's lock; read anywhere */
} Share;

typedef struct {
    GstRTSPMediaFactory parent;
    CamHub *hub;
    CamAudio *audio; /* NULL: no sound */
    int camera;
    char *stream;
    CamRtspMediaCreated created;
    gpointer user_data;
} CamRtspFactory;

typedef struct {
    GstRTSPMediaFactoryClass parent;
} CamRtspFactoryClass;

GType cam_rtsp_factory_get_type(void);
G_DEFINE_TYPE(CamRtspFactory, cam_rtsp_factory, GST_TYPE_RTSP_MEDIA_FACTORY)

static gboolean over(Share *share, guint divisor)
{
    return gst_app_src_get_current_level_bytes(share->source) > share->max_bytes / divisor ||
           gst_app_src_get_current_level_buffers(share->source) > share->max_buffers / divisor;
}

static gboolean deliver(GstBuffer *au, gpointer user_data)
{
    Share *share = user_data;

    /* Between DESCRIBE and PLAY nothing leaves the queue. What is kept for the start is little, for
     * it is the past when it is sent. */
    if (over(share, g_atomic_int_get(&share->playing) ? 1 : 4)) {
        gst_buffer_unref(au);
        share->stuck_since = g_get_monotonic_time();
        return FALSE;
    }
    if (share->sound)
        cam_rtsp_sound_begin(share->sound, GST_BUFFER_PTS(au));
    gst_app_src_push_buffer(share->source, au);
    return TRUE;
}

static gboolean ready(gpointer user_data)
{
    Share *share = user_data;

    if (!g_atomic_int_get(&share->playing) || over(share, 2))
        return FALSE;
    share->stuck_since = 0;
    return TRUE;
}

static void attach_pictures(Share *share)
{
    if (!g_atomic_int_get((gint *)&share->consumer))
        share->consumer = cam_hub_attach(
            share->hub, &(CamHubConsumer){.deliver = deliver, .ready = ready, .user_data = share});
}

static void detach_pictures(Share *share)
{
    guint consumer = (guint)g_atomic_int_exchange((gint *)&share->consumer, 0);

    if (!consumer)
        return;
    share->dropped += cam_hub_consumer_dropped(share->hub, consumer);
    cam_hub_detach(share->hub, consumer);
    /* The next consumer is none that had no room. */
    share->stuck_since = 0;
}

static void detach(Share *share)
{
    detach_pictures(share);
    if (share->sound)
        cam_rtsp_sound_end(share->sound);
}

static void share_free(gpointer data)
{
    Share *share = data;

    detach(share);
    g_clear_pointer(&share->sound, cam_rtsp_sound_free);
    gst_object_unref(share->source);
    cam_hub_unref(share->hub);
    g_free(share);
}

static void on_unprepared(GstRTSPMedia *media, gpointer user_data)
{
    detach(user_data);
}

static GstElement *create_element(GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
    CamRtspFactory *self = (CamRtspFactory *)factory;
    CamStreamConfig config = cam_hub_config(self->hub);
    GstElement *bin = gst_bin_new(NULL);
    GstElement *source = gst_element_factory_make("appsrc", "source");
    GstElement *pay = gst_element_factory_make("rtph264pay", "pay0");
    GstCaps *caps = gst_caps_from_string("video/x-h264,stream-format=byte-stream,alignment=au");

    g_object_set(source, "format", GST_FORMAT_TIME, "is-live", TRUE, "max-bytes", (guint64)0,
                 "caps", caps, NULL);
    gst_caps_unref(caps);
    gst_util_set_object_arg(G_OBJECT(pay), "aggregate-mode", "zero-latency");
    g_object_set(pay, "config-interval", -1, "pt", 96, NULL);
    gst_bin_add_many(GST_BIN(bin), source, pay, NULL);
    gst_element_link(source, pay);
    if (self->audio && config.with_audio)
        cam_rtsp_sound_build(GST_BIN(bin), config.audio);
    return bin;
}

static GstElement *create_pipeline(GstRTSPMediaFactory *factory, GstRTSPMedia *media)
{
    GstRTSPMediaFactoryClass *parent = GST_RTSP_MEDIA_FACTORY_CLASS(cam_rtsp_factory_parent_class);
    GstElement *pipeline = parent->create_pipeline(factory, media);

    if (pipeline)
        cam_pipeline_use_timeline(pipeline);
    return pipeline;
}

/* "?tcp" or "?udp" among the query's parts. */
static GstRTSPLowerTrans protocols(const GstRTSPUrl *url)
{
    g_auto(GStrv) parts = g_strsplit(url->query ? url->query : "", "&", 16);

    if (g_strv_contains((const char *const *)parts, "tcp"))
        return GST_RTSP_LOWER_TRANS_TCP;
    if (g_strv_contains((const char *const *)parts, "udp"))
        return GST_RTSP_LOWER_TRANS_UDP;
    return GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP;
}

void cam_rtsp_media_allow_protocols(GstRTSPMedia *media, const GstRTSPContext *ctx)
{
    if (ctx && ctx->uri)
        gst_rtsp_media_set_protocols(media, protocols(ctx->uri));
}

static Share *share_new(CamRtspFactory *factory, GstRTSPMedia *media)
{
    CamStreamConfig config = cam_hub_config(factory->hub);
    GstElement *bin = gst_rtsp_media_get_element(media);
    Share *share = g_new0(Share, 1);

    share->hub = cam_hub_ref(factory->hub);
    if (factory->audio)
        share->sound = cam_rtsp_sound_new(factory->audio, GST_BIN(bin));
    share->source = GST_APP_SRC(gst_bin_get_by_name(GST_BIN(bin), "source"));
    /* Two seconds of the stream. */
    share->max_bytes = CLAMP((guint64)config.bitrate_kbps * 250, QUEUE_MIN_BYTES, QUEUE_MAX_BYTES);
    share->max_buffers = (guint)MAX(20, 2 * config.fps);
    gst_object_unref(bin);
    return share;
}

static GstRTSPMedia *construct(GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
    GstRTSPMediaFactoryClass *parent = GST_RTSP_MEDIA_FACTORY_CLASS(cam_rtsp_factory_parent_class);
    CamRtspFactory *self = (CamRtspFactory *)factory;
    GstRTSPMedia *media = parent->construct(factory, url);
    Share *share;

    if (!media)
        return NULL;
    share = share_new(self, media);
    share->protocols = protocols(url);
    g_object_set_data_full(G_OBJECT(media), DATA_KEY, share, share_free);
    g_signal_connect(media, "unprepared", G_CALLBACK(on_unprepared), share);
    attach_pictures(share);
    self->created(media, self->camera, self->stream, self->user_data);
    return media;
}

/* Comes after construct() and gives every media what its factory has; the address may ask for less.
 */
static void configure(GstRTSPMediaFactory *factory, GstRTSPMedia *media)
{
    Share *share = g_object_get_data(G_OBJECT(media), DATA_KEY);

    GST_RTSP_MEDIA_FACTORY_CLASS(cam_rtsp_factory_parent_class)->configure(factory, media);
    gst_rtsp_media_set_protocols(media, share->protocols);
}

static gboolean is_set_up(GstRTSPMedia *media, guint index)
{
    GstRTSPStream *stream = gst_rtsp_media_get_stream(media, index);

    return stream && gst_rtsp_stream_is_complete(stream);
}

void cam_rtsp_media_set_playing(GstRTSPMedia *media, gboolean playing)
{
    Share *share = g_object_get_data(G_OBJECT(media), DATA_KEY);

    if (!share) {
        cam_playback_set_playing(cam_playback_of(media), playing);
        return;
    }
    share->playing_since = g_get_monotonic_time();
    g_atomic_int_set(&share->playing, playing);
    /* What the client has not set up, or pauses, is not sent, so it need not be made. After a pause
     * all is new, from a key frame on. */
    if (playing && is_set_up(media, 0))
        attach_pictures(share);
    else
        detach_pictures(share);
    if (share->sound)
        cam_rtsp_sound_set_playing(share->sound, playing && is_set_up(media, 1));
}

guint64 cam_rtsp_media_dropped(GstRTSPMedia *media)
{
    Share *share = g_object_get_data(G_OBJECT(media), DATA_KEY);

    return share ? share->dropped + cam_hub_consumer_dropped(share->hub, share->consumer) : 0;
}

GstClockTime cam_rtsp_media_stuck_for(GstRTSPMedia *media)
{
    Share *share = g_object_get_data(G_OBJECT(media), DATA_KEY);
    gint64 since = share ? share->stuck_since : 0;

    if (!share)
        return cam_playback_stuck_for(cam_playback_of(media));
    if (!g_atomic_int_get((gint *)&share->consumer))
        since = share->sound ? cam_rtsp_sound_stuck_since(share->sound) : 0;
    if (!since || !g_atomic_int_get(&share->playing))
        return 0;
    since = MAX(since, share->playing_since);
    return (GstClockTime)(g_get_monotonic_time() - since) * GST_USECOND;
}

static void cam_rtsp_factory_finalize(GObject *object)
{
    CamRtspFactory *self = (CamRtspFactory *)object;

    cam_hub_unref(self->hub);
    g_clear_pointer(&self->audio, cam_audio_unref);
    g_free(self->stream);
    G_OBJECT_CLASS(cam_rtsp_factory_parent_class)->finalize(object);
}

static void cam_rtsp_factory_class_init(CamRtspFactoryClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = cam_rtsp_factory_finalize;
    klass->parent.create_element = create_element;
    klass->parent.create_pipeline = create_pipeline;
    klass->parent.construct = construct;
    klass->parent.configure = configure;
}

static void cam_rtsp_factory_init(CamRtspFactory *self)
{
}

int cam_rtsp_factory_camera(GstRTSPMediaFactory *factory)
{
    return G_TYPE_CHECK_INSTANCE_TYPE(factory, cam_rtsp_factory_get_type())
               ? ((CamRtspFactory *)factory)->camera
               : -1;
}

GstRTSPMediaFactory *cam_rtsp_factory_new(const CamRtspFactorySetup *setup)
{
    CamRtspFactory *self = g_object_new(cam_rtsp_factory_get_type(), NULL);

    self->hub = cam_hub_ref(setup->hub);
    self->audio = setup->audio ? cam_audio_ref(setup->audio) : NULL;
    self->camera = setup->camera;
    self->stream = g_strdup(setup->stream);
    self->created = setup->created;
    self->user_data = setup->user_data;
    /* Never shared: in a shared media one client that stops reading freezes all others. */
    gst_rtsp_media_factory_set_shared(GST_RTSP_MEDIA_FACTORY(self), FALSE);
    gst_rtsp_media_factory_set_stop_on_disconnect(GST_RTSP_MEDIA_FACTORY(self), TRUE);
    return GST_RTSP_MEDIA_FACTORY(self);
}
