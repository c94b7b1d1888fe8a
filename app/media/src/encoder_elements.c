#include "encoder_elements.h"

#define JPEG_QUALITY_FIRST 75
#define JPEG_QUALITY_MIN 10
#define JPEG_QUALITY_MAX 95

/* Single-threaded encoding costs least; large pictures need more to keep up. */
static guint thread_count(const CamStreamConfig *config)
{
    gint64 rate = (gint64)config->width * config->height * config->fps;

    if (config->unhurried)
        return 1;
    return (guint)CLAMP(1 + rate / (1280 * 720 * 40), 1, (gint64)g_get_num_processors());
}

/* zerolatency is without lookahead and B-frames, which hold pictures back. */
static void configure_x264(GstElement *element, const CamStreamConfig *config)
{
    gst_util_set_object_arg(G_OBJECT(element), "speed-preset", "superfast");
    gst_util_set_object_arg(G_OBJECT(element), "tune", "zerolatency");
    g_object_set(element, "bitrate", (guint)config->bitrate_kbps, "key-int-max", (guint)config->gop,
                 "bframes", 0u, "rc-lookahead", 0, "threads", thread_count(config), "byte-stream",
                 TRUE, NULL);
}

/* min-keyint=1: a key frame that is asked for is a real one (IDR). */
static void configure_x265(GstElement *element, const CamStreamConfig *config)
{
    int workers = config->unhurried ? 1 : (int)g_get_num_processors();
    g_autofree char *options =
        g_strdup_printf("bframes=0:rc-lookahead=0:frame-threads=1:pools=%d:min-keyint=1:"
                        "scenecut=0:open-gop=0:repeat-headers=1:info=0",
                        workers);

    gst_util_set_object_arg(G_OBJECT(element), "speed-preset", "ultrafast");
    gst_util_set_object_arg(G_OBJECT(element), "tune", "zerolatency");
    g_object_set(element, "bitrate", (guint)config->bitrate_kbps, "key-int-max", config->gop,
                 "option-string", options, NULL);
}

static void configure_openh264(GstElement *element, const CamStreamConfig *config)
{
    gst_util_set_object_arg(G_OBJECT(element), "complexity", "low");
    gst_util_set_object_arg(G_OBJECT(element), "rate-control", "bitrate");
    g_object_set(element, "bitrate", (guint)config->bitrate_kbps * 1000, "gop-size",
                 (guint)config->gop, "enable-frame-skip", FALSE, "scene-change-detection", FALSE,
                 "multi-thread", thread_count(config), NULL);
}

static void configure_v4l2(GstElement *element, const CamStreamConfig *config)
{
    GstStructure *controls =
        gst_structure_new("controls", "video_bitrate", G_TYPE_INT, config->bitrate_kbps * 1000,
                          "video_gop_size", G_TYPE_INT, config->gop, "video_b_frames", G_TYPE_INT,
                          0, "repeat_sequence_header", G_TYPE_INT, 1, NULL);

    if (config->codec == CAM_VIDEO_H264)
        gst_structure_set(controls, "h264_i_frame_period", G_TYPE_INT, config->gop, NULL);
    g_object_set(element, "extra-controls", controls, NULL);
    gst_structure_free(controls);
}

void cam_encoder_element_configure(GstElement *element, const char *factory,
                                   const CamStreamConfig *config)
{
    if (g_str_equal(factory, "x264enc"))
        configure_x264(element, config);
    else if (g_str_equal(factory, "x265enc"))
        configure_x265(element, config);
    else if (g_str_equal(factory, "openh264enc"))
        configure_openh264(element, config);
    else if (g_str_equal(factory, "jpegenc"))
        g_object_set(element, "quality", JPEG_QUALITY_FIRST, NULL);
    else
        configure_v4l2(element, config);
}

GstCaps *cam_encoder_element_caps(const char *factory, CamVideoCodec codec)
{
    GstCaps *caps;

    if (codec == CAM_VIDEO_MJPEG)
        return gst_caps_new_empty_simple("image/jpeg");
    caps = gst_caps_new_simple(codec == CAM_VIDEO_H264 ? "video/x-h264" : "video/x-h265",
                               "stream-format", G_TYPE_STRING, "byte-stream", "alignment",
                               G_TYPE_STRING, "au", NULL);
    /* Constrained baseline: what every receiver decodes. Hardware decides its profile itself. */
    if (codec == CAM_VIDEO_H264 && !g_str_equal(factory, "v4l2h264enc"))
        gst_caps_set_simple(caps, "profile", G_TYPE_STRING, "constrained-baseline", NULL);
    return caps;
}

const char *cam_encoder_element_parser(CamVideoCodec codec)
{
    static const char *const parsers[CAM_N_VIDEO_CODECS] = {"h264parse", "h265parse", NULL};

    return parsers[codec];
}

int cam_jpeg_quality_next(const CamStreamConfig *config, int quality, gsize bytes)
{
    gsize wanted = (gsize)config->bitrate_kbps * 125 / (gsize)cam_stream_config_shown_fps(config);

    if (bytes > wanted + wanted / 8)
        quality -= bytes > 2 * wanted ? 5 : 1;
    else if (bytes < wanted - wanted / 8)
        quality += 1;
    return CLAMP(quality, JPEG_QUALITY_MIN, JPEG_QUALITY_MAX);
}
