#include "rtsp_playback.h"
#include "rtsp_playback_media.h"
#include "rtsp_unused.h"

#include <string.h>

#define MIN_RATE 0.125
#define MAX_RATE 16.0

typedef struct {
    GstRTSPClient parent;
} CamRtspPlayer;

typedef struct {
    GstRTSPClientClass parent;
} CamRtspPlayerClass;

G_DEFINE_TYPE(CamRtspPlayer, cam_rtsp_client, GST_TYPE_RTSP_CLIENT)

/* Every PLAY with another speed seeks, also one that names no place. */
static GstClockTime current_place(GstRTSPMedia *media)
{
    gint64 position = 0;

    GST_RTSP_MEDIA_GET_CLASS(media)->query_position(media, &position);
    return (GstClockTime)position;
}

static GstRTSPStatusCode read_range(GstRTSPTimeRange *range, GstClockTime duration,
                                    GstClockTime *start, GstClockTime *stop)
{
    if (range->unit != GST_RTSP_RANGE_NPT || range->min.type == GST_RTSP_TIME_UTC ||
        range->min.type == GST_RTSP_TIME_FRAMES)
        return GST_RTSP_STS_INVALID_RANGE;
    if (!gst_rtsp_range_get_times(range, start, stop))
        return GST_RTSP_STS_INVALID_RANGE;
    if (range->min.type != GST_RTSP_TIME_SECONDS)
        *start = GST_CLOCK_TIME_NONE;
    if (range->max.type != GST_RTSP_TIME_SECONDS)
        *stop = GST_CLOCK_TIME_NONE;
    if (GST_CLOCK_TIME_IS_VALID(*start) && *start >= duration)
        return GST_RTSP_STS_INVALID_RANGE;
    if (GST_CLOCK_TIME_IS_VALID(*start) && GST_CLOCK_TIME_IS_VALID(*stop) && *stop <= *start)
        return GST_RTSP_STS_INVALID_RANGE;
    return GST_RTSP_STS_OK;
}

static GstRTSPTimeRange *range_from(GstClockTime start)
{
    GstRTSPTimeRange *range = g_new0(GstRTSPTimeRange, 1);

    range->unit = GST_RTSP_RANGE_NPT;
    range->min.type = GST_RTSP_TIME_SECONDS;
    range->min.seconds = (gdouble)start / GST_SECOND;
    range->max.type = GST_RTSP_TIME_END;
    return range;
}

static GstRTSPStatusCode adjust_play_mode(GstRTSPClient *client, GstRTSPContext *ctx,
                                          GstRTSPTimeRange **range, GstSeekFlags *flags,
                                          gdouble *rate, GstClockTime *trickmode_interval,
                                          gboolean *enable_rate_control)
{
    CamPlayback *playback = cam_playback_of(ctx->media);
    GstClockTime start = GST_CLOCK_TIME_NONE, stop = GST_CLOCK_TIME_NONE;
    GstRTSPStatusCode status;
    CamPlaybackMode mode;

    cam_rtsp_drop_unused(ctx->media);
    if (!playback)
        return GST_RTSP_STS_OK;
    cam_playback_see_use(playback, ctx->media);
    if (*rate <= 0)
        return GST_RTSP_STS_HEADER_FIELD_NOT_VALID_FOR_RESOURCE;
    *rate = CLAMP(*rate, MIN_RATE, MAX_RATE);
    mode = cam_playback_mode(playback);
    if (*range) {
        status = read_range(*range, cam_timeline_duration(cam_playback_timeline(playback)), &start,
                            &stop);
        if (status != GST_RTSP_STS_OK)
            return status;
        mode.stop = stop;
    }
    if (!GST_CLOCK_TIME_IS_VALID(start) && *rate == mode.rate) {
        /* It goes on where it was paused. */
        g_clear_pointer(range, gst_rtsp_range_free);
        *flags = GST_SEEK_FLAG_NONE;
        cam_playback_set_mode(playback, &mode);
        return GST_RTSP_STS_OK;
    }
    if (!GST_CLOCK_TIME_IS_VALID(start))
        start = current_place(ctx->media);
    start = cam_playback_start_for(playback, start, *rate);
    if (!GST_CLOCK_TIME_IS_VALID(start))
        return GST_RTSP_STS_NOT_FOUND;
    g_clear_pointer(range, gst_rtsp_range_free);
    *range = range_from(start);
    *flags = GST_SEEK_FLAG_FLUSH;
    mode.rate = *rate;
    cam_playback_set_mode(playback, &mode);
    return GST_RTSP_STS_OK;
}

/* Times are sent as fast as they pass for the viewer: that is Scale, though it is called Speed
 * here. */
static GstRTSPStatusCode adjust_play_response(GstRTSPClient *client, GstRTSPContext *ctx)
{
    CamPlayback *playback = cam_playback_of(ctx->media);
    char *scale = NULL;
    gdouble rate;

    if (!playback)
        return GST_RTSP_STS_OK;
    rate = cam_playback_mode(playback).rate;
    gst_rtsp_message_get_header(ctx->request, GST_RTSP_HDR_SCALE, &scale, 0);
    if (!scale)
        return GST_RTSP_STS_OK;
    gst_rtsp_message_remove_header(ctx->response, GST_RTSP_HDR_SPEED, -1);
    gst_rtsp_message_remove_header(ctx->response, GST_RTSP_HDR_SCALE, -1);
    gst_rtsp_message_take_header(ctx->response, GST_RTSP_HDR_SCALE, g_strdup_printf("%1.3f", rate));
    return GST_RTSP_STS_OK;
}

/* The query chooses, it is no part of the place: PLAY may come with it, or without. Clients that
 * put a track's name behind the whole address put it behind the query. */
static char *make_path_from_uri(GstRTSPClient *client, const GstRTSPUrl *url)
{
    const char *rest = url->query ? strchr(url->query, '/') : NULL;

    if (rest && rest[1] == '\0')
        rest = NULL;
    return g_strconcat(*url->abspath ? url->abspath : "/", rest, NULL);
}

static void cam_rtsp_client_class_init(CamRtspPlayerClass *klass)
{
    klass->parent.make_path_from_uri = make_path_from_uri;
    klass->parent.adjust_play_mode = adjust_play_mode;
    klass->parent.adjust_play_response = adjust_play_response;
}

static void cam_rtsp_client_init(CamRtspPlayer *self)
{
}
