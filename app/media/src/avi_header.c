#include "avi_header.h"

#define HAS_INDEX 0x10u
#define INTERLEAVED 0x100u
#define FORMAT_PCM 1
#define FORMAT_MP3 0x55
#define MP3_SAMPLES 1152
#define MP3_EXTRA_BYTES 12

static void put16(GByteArray *bytes, guint16 value)
{
    guint16 little = GUINT16_TO_LE(value);

    g_byte_array_append(bytes, (const guint8 *)&little, sizeof(little));
}

void cam_avi_put32(GByteArray *bytes, guint32 value)
{
    guint32 little = GUINT32_TO_LE(value);

    g_byte_array_append(bytes, (const guint8 *)&little, sizeof(little));
}

void cam_avi_put_tag(GByteArray *bytes, const char *tag)
{
    g_byte_array_append(bytes, (const guint8 *)tag, 4);
}

/* Begins a chunk whose size end_chunk() fills in. */
static guint begin_chunk(GByteArray *bytes, const char *tag)
{
    cam_avi_put_tag(bytes, tag);
    cam_avi_put32(bytes, 0);
    return bytes->len;
}

static void set32(GByteArray *bytes, guint offset, guint32 value)
{
    guint32 little = GUINT32_TO_LE(value);

    memcpy(bytes->data + offset, &little, sizeof(little));
}

static void end_chunk(GByteArray *bytes, guint start)
{
    set32(bytes, start - 4, bytes->len - start);
}

static int caps_int(const CamContainerFormat *format, const char *name, int fallback)
{
    int value = fallback;

    if (format->audio_caps)
        gst_structure_get_int(gst_caps_get_structure(format->audio_caps, 0), name, &value);
    return value;
}

static const char *codec_tag(const CamContainerFormat *format)
{
    return format->video.codec == CAM_VIDEO_MJPEG ? "MJPG" : "H264";
}

static void put_main_header(GByteArray *bytes, const CamContainerFormat *format,
                            const CamAviTotals *totals)
{
    guint start = begin_chunk(bytes, "avih");
    gboolean indexed = totals->file_end > totals->movi_end;

    cam_avi_put32(bytes, (guint32)(1000000 / format->video.fps));
    cam_avi_put32(bytes, (guint32)format->video.bitrate_kbps * 125);
    cam_avi_put32(bytes, 0);
    cam_avi_put32(bytes, INTERLEAVED | (indexed ? HAS_INDEX : 0));
    cam_avi_put32(bytes, totals->frames);
    cam_avi_put32(bytes, 0);
    cam_avi_put32(bytes, format->has_audio ? 2 : 1);
    cam_avi_put32(bytes, MAX(totals->largest_frame, totals->largest_audio));
    cam_avi_put32(bytes, (guint32)format->video.width);
    cam_avi_put32(bytes, (guint32)format->video.height);
    for (int i = 0; i < 4; i++)
        cam_avi_put32(bytes, 0);
    end_chunk(bytes, start);
}

typedef struct {
    const char *type, *handler;
    guint32 scale, rate, length, largest, sample_size;
    int width, height;
} StreamHeader;

static void put_stream_header(GByteArray *bytes, const StreamHeader *header)
{
    guint start = begin_chunk(bytes, "strh");

    cam_avi_put_tag(bytes, header->type);
    cam_avi_put_tag(bytes, header->handler);
    for (int i = 0; i < 3; i++)
        cam_avi_put32(bytes, 0);
    cam_avi_put32(bytes, header->scale);
    cam_avi_put32(bytes, header->rate);
    cam_avi_put32(bytes, 0);
    cam_avi_put32(bytes, header->length);
    cam_avi_put32(bytes, header->largest);
    cam_avi_put32(bytes, G_MAXUINT32);
    cam_avi_put32(bytes, header->sample_size);
    put16(bytes, 0);
    put16(bytes, 0);
    put16(bytes, (guint16)header->width);
    put16(bytes, (guint16)header->height);
    end_chunk(bytes, start);
}

static void put_video(GByteArray *bytes, const CamContainerFormat *format,
                      const CamAviTotals *totals)
{
    const CamStreamConfig *video = &format->video;
    guint list = begin_chunk(bytes, "LIST"), start;

    cam_avi_put_tag(bytes, "strl");
    put_stream_header(bytes, &(StreamHeader){.type = "vids",
                                             .handler = codec_tag(format),
                                             .scale = 1,
                                             .rate = (guint32)video->fps,
                                             .length = totals->frames,
                                             .largest = totals->largest_frame,
                                             .width = video->width,
                                             .height = video->height});
    start = begin_chunk(bytes, "strf");
    cam_avi_put32(bytes, 40);
    cam_avi_put32(bytes, (guint32)video->width);
    cam_avi_put32(bytes, (guint32)video->height);
    put16(bytes, 1);
    put16(bytes, 24);
    cam_avi_put_tag(bytes, codec_tag(format));
    cam_avi_put32(bytes, (guint32)video->width * (guint32)video->height * 3);
    for (int i = 0; i < 4; i++)
        cam_avi_put32(bytes, 0);
    end_chunk(bytes, start);
    end_chunk(bytes, list);
}

static void put_pcm_format(GByteArray *bytes, int rate, int channels)
{
    guint start = begin_chunk(bytes, "strf");

    put16(bytes, FORMAT_PCM);
    put16(bytes, (guint16)channels);
    cam_avi_put32(bytes, (guint32)rate);
    cam_avi_put32(bytes, (guint32)(rate * channels * 2));
    put16(bytes, (guint16)(channels * 2));
    put16(bytes, 16);
    end_chunk(bytes, start);
}

/* One MP3 frame a chunk: "samples" of 1152 samples each. */
static void put_mp3_format(GByteArray *bytes, int rate, int channels, const CamAviTotals *totals)
{
    guint start = begin_chunk(bytes, "strf");
    guint32 frame = totals->audio_units ? (guint32)(totals->audio_bytes / totals->audio_units) : 0;

    put16(bytes, FORMAT_MP3);
    put16(bytes, (guint16)channels);
    cam_avi_put32(bytes, (guint32)rate);
    cam_avi_put32(bytes, (guint32)((guint64)frame * (guint64)rate / MP3_SAMPLES));
    put16(bytes, MP3_SAMPLES);
    put16(bytes, 0);
    put16(bytes, MP3_EXTRA_BYTES);
    put16(bytes, 1);
    cam_avi_put32(bytes, 2);
    put16(bytes, (guint16)frame);
    put16(bytes, 1);
    put16(bytes, 0);
    end_chunk(bytes, start);
}

static void put_audio(GByteArray *bytes, const CamContainerFormat *format,
                      const CamAviTotals *totals)
{
    int rate = caps_int(format, "rate", 48000), channels = caps_int(format, "channels", 2);
    gboolean pcm = format->audio == CAM_AUDIO_PCM;
    guint32 block = (guint32)channels * 2;
    guint list = begin_chunk(bytes, "LIST");

    cam_avi_put_tag(bytes, "strl");
    put_stream_header(bytes, &(StreamHeader){.type = "auds",
                                             .handler = "\1\0\0\0",
                                             .scale = pcm ? 1 : MP3_SAMPLES,
                                             .rate = (guint32)rate,
                                             .length = pcm ? (guint32)(totals->audio_bytes / block)
                                                           : totals->audio_units,
                                             .largest = totals->largest_audio,
                                             .sample_size = pcm ? block : 0});
    if (pcm)
        put_pcm_format(bytes, rate, channels);
    else
        put_mp3_format(bytes, rate, channels, totals);
    end_chunk(bytes, list);
}

GByteArray *cam_avi_header(const CamContainerFormat *format, const CamAviTotals *totals)
{
    GByteArray *bytes = g_byte_array_new();
    guint list;

    cam_avi_put_tag(bytes, "RIFF");
    cam_avi_put32(bytes, 0);
    cam_avi_put_tag(bytes, "AVI ");
    list = begin_chunk(bytes, "LIST");
    cam_avi_put_tag(bytes, "hdrl");
    put_main_header(bytes, format, totals);
    put_video(bytes, format, totals);
    if (format->has_audio)
        put_audio(bytes, format, totals);
    end_chunk(bytes, list);
    list = begin_chunk(bytes, "LIST");
    cam_avi_put_tag(bytes, "movi");
    set32(bytes, list - 4, (guint32)(MAX(totals->movi_end, bytes->len) - list));
    set32(bytes, 4, (guint32)(MAX(totals->file_end, bytes->len) - 8));
    return bytes;
}

guint32 cam_avi_movi_offset(const GByteArray *header)
{
    return header->len - 4;
}
