#include "rtsp_playback_media.h"
#include "lead_in.h"
#include "log.h"
#include "rtsp_recording.h"

#include <gst/app/gstappsrc.h>

#define DATA_KEY "cam-playback"
/* Beyond this only key frames are sent: all would be more than most links and players take. */
#define ALL_FRAMES_RATE 4.0
/* Places come as seconds with a fraction, and are not met to the nanosecond. */
#define MARGIN (GST_MSECOND / 2)

typedef struct {
    CamPlayback *playback;
    CamTrackKind kind;
    GstAppSrc *source; /* NULL: there is no such track */
    CamCursor *cursor;
    CamLeadIn *lead_in; /* what is sent before the cursor's; or NULL */
    int stream;         /* its number in the media */
    gint unused;        /* atomic; the client has not set it up */
    gboolean begun;     /* something was sent since the last seek */
} Track;

struct _CamPlayback {
    CamTimeline *timeline;
    Track tracks[CAM_N_TRACKS];
    GMutex lock;
    CamPlaybackMode mode; /* with lock held, as what follows */
    gboolean playing, ended;
    gint64 taken_at; /* µs */
};

typedef struct {
    GstRTSPMedia parent;
} CamPlaybackMedia;

typedef struct {
    GstRTSPMediaClass parent;
} CamPlaybackMediaClass;

GType cam_playback_media_get_type(void);
G_DEFINE_TYPE(CamPlaybackMedia, cam_playback_media, GST_TYPE_RTSP_MEDIA)

typedef struct {
    GstRTSPMediaFactory parent;
    CamRtspMediaCreated created;
    gpointer user_data;
} CamPlaybackFactory;

typedef struct {
    GstRTSPMediaFactoryClass parent;
} CamPlaybackFactoryClass;

GType cam_playback_factory_get_type(void);
G_DEFINE_TYPE(CamPlaybackFactory, cam_playback_factory, GST_TYPE_RTSP_MEDIA_FACTORY)

static void playback_free(gpointer data)
{
    CamPlayback *self = data;

    for (int i = 0; i < CAM_N_TRACKS; i++) {
        g_clear_pointer(&self->tracks[i].lead_in, cam_lead_in_free);
        g_clear_pointer(&self->tracks[i].cursor, cam_cursor_free);
    }
    cam_timeline_unref(self->timeline);
    g_mutex_clear(&self->lock);
    g_free(self);
}

CamPlayback *cam_playback_of(GstRTSPMedia *media)
{
    GstElement *bin = gst_rtsp_media_get_element(media);
    CamPlayback *self = bin ? g_object_get_data(G_OBJECT(bin), DATA_KEY) : NULL;

    g_clear_object(&bin);
    return self;
}

CamTimeline *cam_playback_timeline(CamPlayback *self)
{
    return self->timeline;
}

void cam_playback_set_mode(CamPlayback *self, const CamPlaybackMode *mode)
{
    g_mutex_lock(&self->lock);
    self->mode = *mode;
    g_mutex_unlock(&self->lock);
}

CamPlaybackMode cam_playback_mode(CamPlayback *self)
{
    CamPlaybackMode mode;

    g_mutex_lock(&self->lock);
    mode = self->mode;
    g_mutex_unlock(&self->lock);
    return mode;
}

static void note(CamPlayback *self, gboolean ended)
{
    g_mutex_lock(&self->lock);
    self->ended = ended;
    self->taken_at = g_get_monotonic_time();
    g_mutex_unlock(&self->lock);
}

void cam_playback_set_playing(CamPlayback *self, gboolean playing)
{
    g_mutex_lock(&self->lock);
    self->playing = playing;
    self->taken_at = g_get_monotonic_time();
    g_mutex_unlock(&self->lock);
}

GstClockTime cam_playback_stuck_for(CamPlayback *self)
{
    GstClockTime stuck = 0;

    g_mutex_lock(&self->lock);
    if (self->playing && !self->ended)
        stuck = (GstClockTime)(g_get_monotonic_time() - self->taken_at) * GST_USECOND;
    g_mutex_unlock(&self->lock);
    return stuck;
}

/* The picture's end ends the sound, which may be waiting. */
static void end_tracks(Track *track)
{
    CamPlayback *self = track->playback;

    note(self, TRUE);
    gst_app_src_end_of_stream(track->source);
    if (track->kind == CAM_TRACK_VIDEO && self->tracks[CAM_TRACK_AUDIO].source)
        gst_app_src_end_of_stream(self->tracks[CAM_TRACK_AUDIO].source);
}

static gboolean is_over(GstBuffer *unit, const CamPlaybackMode *mode)
{
    return GST_CLOCK_TIME_IS_VALID(mode->stop) && GST_BUFFER_PTS(unit) >= mode->stop;
}

static gboolean keys_only(const Track *track, gdouble rate)
{
    return track->kind == CAM_TRACK_VIDEO && rate > ALL_FRAMES_RATE;
}

GstClockTime cam_playback_start_for(CamPlayback *self, GstClockTime time, gdouble rate)
{
    CamCursor *cursor = cam_cursor_new(self->timeline, CAM_TRACK_VIDEO);
    gboolean exact = rate <= ALL_FRAMES_RATE &&
                     cam_lead_in_works(cam_timeline_codec(self->timeline, CAM_TRACK_VIDEO));
    GstClockTime start =
        exact ? cam_cursor_shown_at(cursor, time + MARGIN) : cam_cursor_seek(cursor, time + MARGIN);

    cam_cursor_free(cursor);
    return start;
}

static GstBuffer *next_unit(Track *track, gdouble rate)
{
    GstBuffer *unit = track->lead_in ? cam_lead_in_next(track->lead_in) : NULL;

    if (unit)
        return unit;
    g_clear_pointer(&track->lead_in, cam_lead_in_free);
    return cam_cursor_next(track->cursor, keys_only(track, rate));
}

static void on_need_data(GstAppSrc *source, guint length, gpointer user_data)
{
    Track *track = user_data;
    CamPlaybackMode mode = cam_playback_mode(track->playback);
    GstBuffer *unit;

    if (g_atomic_int_get(&track->unused))
        return;

    /* One unit of sound, so that all tracks have begun; then silence until the picture ends. */
    if (track->kind == CAM_TRACK_AUDIO && mode.rate != 1 && track->begun)
        return;
    unit = next_unit(track, mode.rate);
    /* The first one goes out even behind the stop: a track that ends before it begins would end
     * the process (an assertion in gst-rtsp-server). */
    if (!unit || (track->begun && is_over(unit, &mode))) {
        g_clear_pointer(&unit, gst_buffer_unref);
        end_tracks(track);
        return;
    }
    track->begun = TRUE;
    note(track->playback, FALSE);
    gst_app_src_push_buffer(source, unit);
}

/* No unit is being read meanwhile: the seek holds the stream. */
static gboolean on_seek_data(GstAppSrc *source, guint64 position, gpointer user_data)
{
    Track *track = user_data;

    GstClockTime place;

    track->begun = FALSE;
    g_clear_pointer(&track->lead_in, cam_lead_in_free);
    if (track->kind == CAM_TRACK_AUDIO)
        return GST_CLOCK_TIME_IS_VALID(cam_cursor_seek(track->cursor, position));
    place = cam_cursor_seek(track->cursor, position + MARGIN);
    if (GST_CLOCK_TIME_IS_VALID(place) && place + MARGIN < position) {
        track->lead_in = cam_lead_in_new(track->cursor, track->playback->timeline, position);
        if (!track->lead_in)
            place = cam_cursor_seek(track->cursor, position + MARGIN);
    }
    return GST_CLOCK_TIME_IS_VALID(place);
}

static GstElement *add(GstElement *bin, const char *factory, const char *name)
{
    GstElement *element = gst_element_factory_make(factory, name);

    if (!element)
        cam_log(CAM_LOG_ERROR, "playback", "%s is not installed", factory);
    else
        gst_bin_add(GST_BIN(bin), element);
    return element;
}

/* What goes between the source and the network: an element in front (or NULL), the payloader. */
static void elements_for(CamCodec codec, const char **front, const char **pay)
{
    *front = NULL;
    *pay = NULL;
    switch (codec) {
    case CAM_CODEC_NONE:
        break;
    case CAM_CODEC_H264:
        *pay = "rtph264pay";
        break;
    case CAM_CODEC_H265:
        *pay = "rtph265pay";
        break;
    case CAM_CODEC_MJPEG:
        *front = "jpegparse";
        *pay = "rtpjpegpay";
        break;
    case CAM_CODEC_AAC:
        *pay = "rtpmp4gpay";
        break;
    case CAM_CODEC_MP3:
        *front = "mpegaudioparse";
        *pay = "rtpmpapay";
        break;
    case CAM_CODEC_PCM:
        *front = "audioconvert";
        *pay = "rtpL16pay";
        break;
    }
}

static GstElement *make_source(CamPlayback *self, GstElement *bin, CamTrackKind kind)
{
    GstAppSrcCallbacks callbacks = {.need_data = on_need_data, .seek_data = on_seek_data};
    Track *track = &self->tracks[kind];
    GstElement *source = add(bin, "appsrc", NULL);
    GstCaps *caps = cam_timeline_caps(self->timeline, kind);

    track->playback = self;
    track->kind = kind;
    track->source = GST_APP_SRC(source);
    track->cursor = cam_cursor_new(self->timeline, kind);
    g_object_set(source, "format", GST_FORMAT_TIME, "max-bytes", (guint64)0, "caps", caps,
                 "duration", cam_timeline_duration(self->timeline), NULL);
    gst_util_set_object_arg(G_OBJECT(source), "stream-type", "seekable");
    gst_app_src_set_callbacks(GST_APP_SRC(source), &callbacks, track, NULL);
    gst_caps_unref(caps);
    return source;
}

void cam_playback_see_use(CamPlayback *self, GstRTSPMedia *media)
{
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        Track *track = &self->tracks[i];
        GstRTSPStream *stream =
            track->source ? gst_rtsp_media_get_stream(media, (guint)track->stream) : NULL;

        if (stream && !gst_rtsp_stream_is_complete(stream))
            g_atomic_int_set(&track->unused, TRUE);
    }
}

/* FALSE: this machine lacks what it needs. */
static gboolean add_track(CamPlayback *self, GstElement *bin, CamTrackKind kind, int number)
{
    g_autofree char *name = g_strdup_printf("pay%d", number);
    const char *front_name, *pay_name;
    GstElement *source, *front = NULL, *pay;

    elements_for(cam_timeline_codec(self->timeline, kind), &front_name, &pay_name);
    pay = add(bin, pay_name, name);
    if (!pay || (front_name && !(front = add(bin, front_name, NULL))))
        return FALSE;
    source = make_source(self, bin, kind);
    self->tracks[kind].stream = number;
    if (g_object_class_find_property(G_OBJECT_GET_CLASS(pay), "aggregate-mode"))
        gst_util_set_object_arg(G_OBJECT(pay), "aggregate-mode", "zero-latency");
    if (kind == CAM_TRACK_VIDEO && cam_timeline_codec(self->timeline, kind) != CAM_CODEC_MJPEG)
        g_object_set(pay, "config-interval", -1, NULL);
    if (GST_IS_ELEMENT(pay) && !g_str_equal(pay_name, "rtpjpegpay") &&
        !g_str_equal(pay_name, "rtpmpapay"))
        g_object_set(pay, "pt", 96 + number, NULL);
    return front ? gst_element_link_many(source, front, pay, NULL) : gst_element_link(source, pay);
}

static GstElement *create_element(GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
    GstRTSPContext *ctx = gst_rtsp_context_get_current();
    CamRecording *recording = ctx && ctx->client ? cam_recording_of(ctx->client) : NULL;
    CamPlayback *self;
    GstElement *bin;
    int n = 0;

    if (!recording)
        return NULL;
    self = g_new0(CamPlayback, 1);
    g_mutex_init(&self->lock);
    self->timeline = cam_timeline_ref(recording->timeline);
    self->mode = (CamPlaybackMode){GST_CLOCK_TIME_NONE, 1};
    bin = gst_bin_new(NULL);
    g_object_set_data_full(G_OBJECT(bin), DATA_KEY, self, playback_free);
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        if (cam_timeline_codec(self->timeline, (CamTrackKind)i) == CAM_CODEC_NONE)
            continue;
        if (!add_track(self, bin, (CamTrackKind)i, n++)) {
            gst_object_unref(gst_object_ref_sink(bin));
            return NULL;
        }
    }
    return bin;
}

static GstRTSPMedia *construct(GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
    GstRTSPMediaFactoryClass *parent =
        GST_RTSP_MEDIA_FACTORY_CLASS(cam_playback_factory_parent_class);
    CamPlaybackFactory *self = (CamPlaybackFactory *)factory;
    GstRTSPContext *ctx = gst_rtsp_context_get_current();
    CamRecording *recording = ctx && ctx->client ? cam_recording_of(ctx->client) : NULL;
    GstRTSPMedia *media = recording ? parent->construct(factory, url) : NULL;

    if (media)
        self->created(media, recording->camera, NULL, self->user_data);
    return media;
}

static void configure(GstRTSPMediaFactory *factory, GstRTSPMedia *media)
{
    GST_RTSP_MEDIA_FACTORY_CLASS(cam_playback_factory_parent_class)->configure(factory, media);
    cam_rtsp_media_allow_protocols(media, gst_rtsp_context_get_current());
}

static void cam_playback_factory_class_init(CamPlaybackFactoryClass *klass)
{
    klass->parent.create_element = create_element;
    klass->parent.construct = construct;
    klass->parent.configure = configure;
}

static void cam_playback_factory_init(CamPlaybackFactory *self)
{
}

/* Without a position (nothing has been sent yet) the answer would be "now". */
static gboolean query_position(GstRTSPMedia *media, gint64 *position)
{
    if (!GST_RTSP_MEDIA_CLASS(cam_playback_media_parent_class)->query_position(media, position) ||
        *position < 0)
        *position = 0;
    return TRUE;
}

static gboolean query_stop(GstRTSPMedia *media, gint64 *stop)
{
    CamPlayback *self = cam_playback_of(media);
    CamPlaybackMode mode;

    if (!self)
        return FALSE;
    mode = cam_playback_mode(self);
    *stop = (gint64)MIN(mode.stop, cam_timeline_duration(self->timeline));
    return TRUE;
}

static void cam_playback_media_class_init(CamPlaybackMediaClass *klass)
{
    klass->parent.query_position = query_position;
    klass->parent.query_stop = query_stop;
}

static void cam_playback_media_init(CamPlaybackMedia *self)
{
}

GstRTSPMediaFactory *cam_playback_factory_new(CamRtspMediaCreated created, gpointer user_data)
{
    CamPlaybackFactory *self = g_object_new(cam_playback_factory_get_type(), NULL);
    GstRTSPMediaFactory *factory = GST_RTSP_MEDIA_FACTORY(self);

    self->created = created;
    self->user_data = user_data;
    gst_rtsp_media_factory_set_media_gtype(factory, cam_playback_media_get_type());
    gst_rtsp_media_factory_set_shared(factory, FALSE);
    gst_rtsp_media_factory_set_stop_on_disconnect(factory, TRUE);
    return factory;
}
