#include "media_file.h"
#include "bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_UNIT_BYTES (32u << 20)
/* Ten hours at 60 frames a second. */
#define MAX_UNITS 2200000

static gboolean read_at(int fd, guint64 offset, guint8 *data, gsize size)
{
    gsize done = 0;

    while (done < size) {
        gssize n = pread(fd, data + done, size - done, (off_t)(offset + done));

        if (n == 0 || (n < 0 && errno != EINTR))
            return FALSE;
        done += n > 0 ? (gsize)n : 0;
    }
    return TRUE;
}

GByteArray *cam_media_file_bytes(CamMediaFile *file, guint64 offset, guint64 size, guint64 max)
{
    GByteArray *bytes;

    if (size > max || offset > file->size || size > file->size - offset)
        return NULL;
    bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, (guint)size);
    if (read_at(file->fd, offset, bytes->data, size))
        return bytes;
    g_byte_array_unref(bytes);
    return NULL;
}

gboolean cam_track_add(CamMediaFile *file, CamTrack *track, const CamUnit *unit)
{
    if (unit->size == 0 || unit->size > MAX_UNIT_BYTES || unit->offset > file->size ||
        unit->size > file->size - unit->offset || track->units->len >= MAX_UNITS)
        return FALSE;
    g_array_append_val(track->units, *unit);
    return TRUE;
}

static void track_clear(CamTrack *track)
{
    g_array_unref(track->units);
    g_byte_array_unref(track->parameter_sets);
    g_byte_array_unref(track->codec_data);
}

void cam_media_file_free(CamMediaFile *file)
{
    for (int i = 0; i < CAM_N_TRACKS; i++)
        track_clear(&file->track[i]);
    if (file->fd >= 0)
        close(file->fd);
    g_free(file);
}

/* FALSE: see *MESSAGE. */
static gboolean open_file(CamMediaFile *file, const char *path, char **message)
{
    struct stat info;

    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &info) != 0) {
        *message = g_strdup(g_strerror(errno));
        return FALSE;
    }
    if (!S_ISREG(info.st_mode)) {
        *message = g_strdup("not a file");
        return FALSE;
    }
    file->size = (guint64)info.st_size;
    return TRUE;
}

/* By what it holds; its name says nothing. */
static gboolean read_index(CamMediaFile *file)
{
    guint8 head[12];

    if (file->size < sizeof(head) || !read_at(file->fd, 0, head, sizeof(head)))
        return FALSE;
    if (memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "AVI ", 4) == 0)
        return cam_avi_index(file);
    return memcmp(head + 4, "ftyp", 4) == 0 && cam_mp4_index(file);
}

/* A player that gets neither size nor rate can do nothing with the track. */
static gboolean is_sane(const CamTrack *track, CamTrackKind kind)
{
    if (track->codec == CAM_CODEC_NONE || track->units->len == 0 || track->time_scale == 0)
        return FALSE;
    if (kind == CAM_TRACK_AUDIO)
        return track->rate >= 1000 && track->rate <= 384000 && track->channels >= 1 &&
               track->channels <= 8;
    return track->width >= 1 && track->width <= 16384 && track->height >= 1 &&
           track->height <= 16384;
}

CamMediaFile *cam_media_file_open(const char *path, char **message)
{
    CamMediaFile *file = g_new0(CamMediaFile, 1);
    gboolean good;

    *message = NULL;
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        file->track[i].units = g_array_new(FALSE, FALSE, sizeof(CamUnit));
        file->track[i].parameter_sets = g_byte_array_new();
        file->track[i].codec_data = g_byte_array_new();
    }
    good = open_file(file, path, message) && read_index(file);
    for (int i = 0; good && i < CAM_N_TRACKS; i++) {
        if (!is_sane(&file->track[i], (CamTrackKind)i))
            file->track[i].codec = CAM_CODEC_NONE;
    }
    if (good && file->track[CAM_TRACK_VIDEO].codec != CAM_CODEC_NONE)
        return file;
    if (!*message)
        *message = g_strdup("no MP4 or AVI file with a picture that can be played");
    cam_media_file_free(file);
    return NULL;
}

static GstCaps *video_caps(const CamTrack *track, const char *type)
{
    return gst_caps_new_simple(type, "width", G_TYPE_INT, track->width, "height", G_TYPE_INT,
                               track->height, NULL);
}

static GstCaps *audio_caps(const CamTrack *track, const char *type)
{
    return gst_caps_new_simple(type, "rate", G_TYPE_INT, track->rate, "channels", G_TYPE_INT,
                               track->channels, NULL);
}

GstCaps *cam_track_caps(const CamTrack *track)
{
    GstCaps *caps = NULL;
    GstBuffer *data;

    switch (track->codec) {
    case CAM_CODEC_NONE:
        break;
    case CAM_CODEC_H264:
    case CAM_CODEC_H265:
        caps = video_caps(track, track->codec == CAM_CODEC_H264 ? "video/x-h264" : "video/x-h265");
        gst_caps_set_simple(caps, "stream-format", G_TYPE_STRING, "byte-stream", "alignment",
                            G_TYPE_STRING, "au", NULL);
        break;
    case CAM_CODEC_MJPEG:
        caps = video_caps(track, "image/jpeg");
        gst_caps_set_simple(caps, "parsed", G_TYPE_BOOLEAN, TRUE, "framerate", GST_TYPE_FRACTION, 0,
                            1, NULL);
        break;
    case CAM_CODEC_AAC:
        caps = audio_caps(track, "audio/mpeg");
        data = gst_buffer_new_memdup(track->codec_data->data, track->codec_data->len);
        gst_caps_set_simple(caps, "mpegversion", G_TYPE_INT, 4, "stream-format", G_TYPE_STRING,
                            "raw", "framed", G_TYPE_BOOLEAN, TRUE, "codec_data", GST_TYPE_BUFFER,
                            data, NULL);
        gst_buffer_unref(data);
        break;
    case CAM_CODEC_MP3:
        caps = audio_caps(track, "audio/mpeg");
        gst_caps_set_simple(caps, "mpegversion", G_TYPE_INT, 1, "layer", G_TYPE_INT, 3, NULL);
        break;
    case CAM_CODEC_PCM:
        caps = audio_caps(track, "audio/x-raw");
        gst_caps_set_simple(caps, "format", G_TYPE_STRING, "S16LE", "layout", G_TYPE_STRING,
                            "interleaved", NULL);
        break;
    }
    return caps;
}

GstClockTime cam_track_time(const CamTrack *track, gint64 units)
{
    return units <= 0 ? 0
                      : gst_util_uint64_scale_round((guint64)units, GST_SECOND, track->time_scale);
}

static const CamUnit *unit_at(const CamTrack *track, guint i)
{
    return &g_array_index(track->units, CamUnit, i);
}

guint cam_track_unit_at(const CamTrack *track, GstClockTime time)
{
    guint low = 0, high = track->units->len;

    /* Units without a lag between pictures and decoding are in order. */
    while (high - low > 1) {
        guint middle = low + (high - low) / 2;
        const CamUnit *unit = unit_at(track, middle);

        if (cam_track_time(track, unit->pts - unit->lag) <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

guint cam_track_key_before(const CamTrack *track, GstClockTime time)
{
    guint low = cam_track_unit_at(track, time);

    while (low > 0 &&
           (!unit_at(track, low)->key || cam_track_time(track, unit_at(track, low)->pts) > time))
        low--;
    return low;
}

GstClockTime cam_track_unit_duration(const CamTrack *track, guint i)
{
    const CamUnit *unit = unit_at(track, i);
    gint64 start = unit->pts - unit->lag, end = track->end;

    if (i + 1 < track->units->len)
        end = unit_at(track, i + 1)->pts - unit_at(track, i + 1)->lag;
    return end > start ? cam_track_time(track, end) - cam_track_time(track, start) : 0;
}

static guint32 read_length(const guint8 *data, int size)
{
    guint32 length = 0;

    for (int i = 0; i < size; i++)
        length = length << 8 | data[i];
    return length;
}

/* Lengths become start codes. What is not whole is left out. */
static GByteArray *to_byte_stream(const CamTrack *track, GByteArray *unit, gboolean key)
{
    static const guint8 start_code[4] = {0, 0, 0, 1};
    GByteArray *out = g_byte_array_sized_new(unit->len + track->parameter_sets->len + 16);
    CamBytes in = {unit->data, unit->len, FALSE};

    if (key)
        g_byte_array_append(out, track->parameter_sets->data, track->parameter_sets->len);
    while (in.left > (gsize)track->length_size) {
        guint32 length =
            read_length(cam_bytes_take(&in, (gsize)track->length_size), track->length_size);

        if (length == 0 || length > in.left)
            break;
        g_byte_array_append(out, start_code, sizeof(start_code));
        g_byte_array_append(out, cam_bytes_take(&in, length), length);
    }
    g_byte_array_unref(unit);
    return out;
}

GstBuffer *cam_media_file_read(CamMediaFile *file, CamTrackKind kind, guint i)
{
    const CamTrack *track = &file->track[kind];
    const CamUnit *unit = unit_at(track, i);
    GByteArray *bytes = cam_media_file_bytes(file, unit->offset, unit->size, MAX_UNIT_BYTES);
    GstBuffer *buffer;
    GBytes *data;

    if (!bytes)
        return NULL;
    if (track->length_size > 0)
        bytes = to_byte_stream(track, bytes, unit->key);
    data = g_byte_array_free_to_bytes(bytes);
    buffer = gst_buffer_new_wrapped_bytes(data);
    g_bytes_unref(data);
    GST_BUFFER_PTS(buffer) = cam_track_time(track, unit->pts);
    GST_BUFFER_DTS(buffer) = cam_track_time(track, unit->pts - unit->lag);
    GST_BUFFER_DURATION(buffer) = cam_track_unit_duration(track, i);
    if (!unit->key)
        GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT);
    return buffer;
}
