#include "thumbnail.h"
#include "jpeg_colours.h"
#include "media_file.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

#define TIMEOUT_US (5 * G_USEC_PER_SEC)
#define POLL (50 * GST_MSECOND)
/* 8K. Larger ones would need more memory than a camera has to give. */
#define MAX_PIXELS (8192 * 4320)

typedef struct {
    GstElement *pipeline;
    GstAppSrc *source;
    GstAppSink *sink;
} Decoder;

static GstElement *make_decoder(CamCodec codec)
{
    static const char *const names[][3] = {
        [CAM_CODEC_H264] = {"avdec_h264", "openh264dec", NULL},
        [CAM_CODEC_H265] = {"avdec_h265", "libde265dec", NULL},
        [CAM_CODEC_MJPEG] = {"jpegdec", "avdec_mjpeg", NULL},
    };
    GstElement *element = NULL;

    for (int i = 0; !element && names[codec][i]; i++)
        element = gst_element_factory_make(names[codec][i], NULL);
    if (element && g_object_class_find_property(G_OBJECT_GET_CLASS(element), "max-threads"))
        g_object_set(element, "max-threads", 1, NULL);
    return element;
}

static GstElement *make_parser(CamCodec codec)
{
    if (codec == CAM_CODEC_MJPEG)
        return gst_element_factory_make("jpegparse", NULL);
    return gst_element_factory_make(codec == CAM_CODEC_H264 ? "h264parse" : "h265parse", NULL);
}

static int scaled_height(const CamTrack *track, int width)
{
    int height = (int)((gint64)track->height * width / track->width) / 2 * 2;

    return MAX(height, 2);
}

static gboolean decoder_open(Decoder *self, const CamTrack *track, int width)
{
    GstElement *parts[] = {gst_element_factory_make("appsrc", NULL),
                           make_parser(track->codec),
                           make_decoder(track->codec),
                           gst_element_factory_make("videoscale", NULL),
                           gst_element_factory_make("videoconvert", NULL),
                           gst_element_factory_make("appsink", NULL)};
    GstCaps *caps = cam_track_caps(track);
    gboolean complete = TRUE;

    self->pipeline = gst_object_ref_sink(gst_pipeline_new(NULL));
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        complete &= parts[i] != NULL;
        if (parts[i])
            gst_bin_add(GST_BIN(self->pipeline), parts[i]);
    }
    self->source = GST_APP_SRC(parts[0]);
    self->sink = GST_APP_SINK(parts[5]);
    g_object_set(parts[0], "format", GST_FORMAT_TIME, "caps", caps, NULL);
    gst_caps_unref(caps);
    caps = gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "I420", "width", G_TYPE_INT,
                               width, "height", G_TYPE_INT, scaled_height(track, width),
                               "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);
    g_object_set(parts[5], "sync", FALSE, "caps", caps, "max-buffers", 1, "enable-last-sample",
                 FALSE, NULL);
    gst_caps_unref(caps);
    return complete &&
           gst_element_link_many(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5],
                                 NULL) &&
           gst_element_set_state(self->pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
}

static void decoder_close(Decoder *self)
{
    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_object_unref(self->pipeline);
}

static gboolean has_failed(Decoder *self)
{
    GstBus *bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    gboolean failed = message != NULL;

    g_clear_pointer(&message, gst_message_unref);
    gst_object_unref(bus);
    return failed;
}

/* NULL: it gives no picture. Takes UNIT. */
static GstSample *decode(Decoder *self, GstBuffer *unit, const gint *cancel)
{
    gint64 deadline = g_get_monotonic_time() + TIMEOUT_US;
    GstSample *sample = NULL;

    gst_app_src_push_buffer(self->source, unit);
    gst_app_src_end_of_stream(self->source);
    while (!sample && g_get_monotonic_time() < deadline && !g_atomic_int_get(cancel)) {
        sample = gst_app_sink_try_pull_sample(self->sink, POLL);
        if (!sample && (gst_app_sink_is_eos(self->sink) || has_failed(self)))
            break;
    }
    return sample;
}

static GBytes *compress(GstSample *sample, int quality, CamThumbnail *thumbnail)
{
    GstVideoInfo info;
    GstVideoFrame frame;
    GBytes *jpeg;

    if (!gst_video_info_from_caps(&info, gst_sample_get_caps(sample)) ||
        !gst_video_frame_map(&frame, &info, gst_sample_get_buffer(sample), GST_MAP_READ))
        return NULL;
    jpeg = cam_jpeg_encode(&frame, quality);
    thumbnail->width = GST_VIDEO_FRAME_WIDTH(&frame);
    thumbnail->height = GST_VIDEO_FRAME_HEIGHT(&frame);
    gst_video_frame_unmap(&frame);
    return jpeg;
}

static gboolean make(CamMediaFile *file, guint i, int width, int quality, const gint *cancel,
                     CamThumbnail *thumbnail)
{
    const CamTrack *track = &file->track[CAM_TRACK_VIDEO];
    GstBuffer *unit = cam_media_file_read(file, CAM_TRACK_VIDEO, i);
    Decoder decoder = {0};
    GstSample *sample = NULL;

    if (!unit)
        return FALSE;
    thumbnail->position_ms = (gint64)(GST_BUFFER_PTS(unit) / GST_MSECOND);
    GST_BUFFER_PTS(unit) = 0;
    GST_BUFFER_DTS(unit) = 0;
    if (decoder_open(&decoder, track, MIN(width, track->width) / 2 * 2))
        sample = decode(&decoder, unit, cancel);
    else
        gst_buffer_unref(unit);
    if (sample)
        thumbnail->jpeg = compress(sample, quality, thumbnail);
    g_clear_pointer(&sample, gst_sample_unref);
    decoder_close(&decoder);
    return thumbnail->jpeg != NULL;
}

gboolean cam_thumbnail_make(const char *path, gint64 position_ms, int width, int quality,
                            const gint *cancel, CamThumbnail *thumbnail, char **message)
{
    CamMediaFile *file = cam_media_file_open(path, message);
    const CamTrack *track;
    gboolean made = FALSE;
    guint i;

    *thumbnail = (CamThumbnail){0};
    if (!file)
        return FALSE;
    track = &file->track[CAM_TRACK_VIDEO];
    i = cam_track_key_before(track, (GstClockTime)position_ms * GST_MSECOND);
    if (track->width >= 2 && track->height >= 2 && track->width <= MAX_PIXELS / track->height)
        made = make(file, i, width, quality, cancel, thumbnail);
    cam_media_file_free(file);
    if (!made)
        *message = g_strdup("no picture can be decoded there");
    return made;
}
