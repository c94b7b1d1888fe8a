/* AVI: the index where there is one, else (a cut off file, or what lies behind the first gigabyte)
 * the chunks themselves. */
#include "bytes.h"
#include "media_file.h"

#define MAX_HEADER_BYTES (1u << 20)
#define MAX_INDEX_BYTES (64u << 20)
#define MAX_LISTS 4096
#define MAX_CHUNKS 5000000
#define PEEK 96
#define FOURCC(a, b, c, d)                                                                         \
    ((guint32)(a) | (guint32)(b) << 8 | (guint32)(c) << 16 | (guint32)(d) << 24)
#define RIFF FOURCC('R', 'I', 'F', 'F')
#define LIST FOURCC('L', 'I', 'S', 'T')

typedef struct {
    CamTrack *track; /* NULL: not used */
    guint32 scale, rate, sample_size;
    guint64 chunks, bytes; /* so far */
} Stream;

typedef struct {
    CamMediaFile *file;
    Stream streams[8];
    guint n_streams;
    guint64 movi, movi_end; /* the first one, behind its name */
    gboolean indexed;
    guint scanned;
} Reader;

static void read_video_format(CamTrack *track, guint32 handler, CamBytes in)
{
    guint32 compression;
    gint32 height;

    cam_bytes_skip(&in, 4);
    track->width = (int)(cam_bytes_le32(&in) & 0xffff);
    height = (gint32)cam_bytes_le32(&in);
    track->height = ABS(CLAMP(height, -65535, 65535));
    cam_bytes_skip(&in, 4);
    compression = cam_bytes_le32(&in);
    if (in.over)
        return;
    for (guint32 code = compression;; code = handler) {
        if (code == FOURCC('H', '2', '6', '4') || code == FOURCC('h', '2', '6', '4') ||
            code == FOURCC('X', '2', '6', '4') || code == FOURCC('a', 'v', 'c', '1'))
            track->codec = CAM_CODEC_H264;
        else if (code == FOURCC('M', 'J', 'P', 'G') || code == FOURCC('m', 'j', 'p', 'g'))
            track->codec = CAM_CODEC_MJPEG;
        if (track->codec != CAM_CODEC_NONE || code == handler)
            return;
    }
}

static void read_audio_format(CamTrack *track, CamBytes in)
{
    guint16 tag = cam_bytes_le16(&in), bits;
    guint32 rate;

    track->channels = cam_bytes_le16(&in);
    rate = cam_bytes_le32(&in);
    track->rate = (int)MIN(rate, (guint32)G_MAXINT32);
    cam_bytes_skip(&in, 6);
    bits = cam_bytes_le16(&in);
    if (tag == 1 && bits == 16)
        track->codec = CAM_CODEC_PCM;
    else if (tag == 0x55)
        track->codec = CAM_CODEC_MP3;
}

static gboolean next_chunk(CamBytes *in, guint32 *id, CamBytes *body)
{
    guint32 size;

    *id = cam_bytes_le32(in);
    size = cam_bytes_le32(in);
    if (in->over)
        return FALSE;
    *body = cam_bytes_part(in, size);
    if (size % 2 && in->left > 0)
        cam_bytes_skip(in, 1);
    return TRUE;
}

static void read_stream(Reader *reader, CamBytes strl)
{
    Stream *stream;
    guint32 id, type = 0, handler = 0;
    CamBytes body;

    if (reader->n_streams == G_N_ELEMENTS(reader->streams))
        return;
    stream = &reader->streams[reader->n_streams++];
    while (next_chunk(&strl, &id, &body)) {
        if (id == FOURCC('s', 't', 'r', 'h')) {
            type = cam_bytes_le32(&body);
            handler = cam_bytes_le32(&body);
            cam_bytes_skip(&body, 12);
            stream->scale = cam_bytes_le32(&body);
            stream->rate = cam_bytes_le32(&body);
            cam_bytes_skip(&body, 16);
            stream->sample_size = cam_bytes_le32(&body);
        } else if (id == FOURCC('s', 't', 'r', 'f') && !stream->track && stream->rate) {
            CamTrackKind kind =
                type == FOURCC('v', 'i', 'd', 's') ? CAM_TRACK_VIDEO : CAM_TRACK_AUDIO;

            if ((kind == CAM_TRACK_AUDIO && type != FOURCC('a', 'u', 'd', 's')) ||
                reader->file->track[kind].codec != CAM_CODEC_NONE)
                return;
            stream->track = &reader->file->track[kind];
            stream->track->time_scale = stream->rate;
            if (kind == CAM_TRACK_VIDEO)
                read_video_format(stream->track, handler, body);
            else
                read_audio_format(stream->track, body);
        }
    }
}

static void read_header(Reader *reader, CamBytes hdrl)
{
    CamBytes body;
    guint32 id;

    while (next_chunk(&hdrl, &id, &body)) {
        if (id == LIST && cam_bytes_le32(&body) == FOURCC('s', 't', 'r', 'l'))
            read_stream(reader, body);
    }
}

/* Of what a chunk's name says; NULL: none that is used. */
static Stream *stream_of(Reader *reader, guint32 id)
{
    guint tens = (id & 0xff) - '0', ones = (id >> 8 & 0xff) - '0', number;
    guint32 kind = id >> 16;

    if (tens > 9 || ones > 9)
        return NULL;
    if (kind != ('d' | 'c' << 8) && kind != ('d' | 'b' << 8) && kind != ('w' | 'b' << 8))
        return NULL;
    number = tens * 10 + ones;
    return number < reader->n_streams && reader->streams[number].track ? &reader->streams[number]
                                                                       : NULL;
}

/* FALSE: no more fit in. */
static gboolean add_chunk(Reader *reader, Stream *stream, guint64 offset, guint32 size,
                          gboolean key)
{
    guint64 position = stream->sample_size ? stream->bytes / stream->sample_size : stream->chunks;
    CamUnit unit = {.offset = offset, .size = size & 0x7fffffff, .key = key};
    guint64 next;

    unit.pts = (gint64)(position * stream->scale);
    stream->chunks++;
    stream->bytes += size;
    next = stream->sample_size ? stream->bytes / stream->sample_size : stream->chunks;
    /* An empty chunk is a picture that is shown again. */
    if (size > 0 && (size != unit.size || !cam_track_add(reader->file, stream->track, &unit)))
        return FALSE;
    stream->track->end = (gint64)(next * stream->scale);
    return TRUE;
}

/* A key frame of H.264 begins with parameter sets or is an IDR picture. */
static gboolean looks_like_key(const CamTrack *track, const guint8 *data, gsize size)
{
    if (track->codec != CAM_CODEC_H264)
        return TRUE;
    for (gsize i = 0; i + 3 < size; i++) {
        if (data[i] || data[i + 1] || data[i + 2] != 1)
            continue;
        switch (data[i + 3] & 31) {
        case 5:
        case 7:
            return TRUE;
        case 1:
            return FALSE;
        default:
            break;
        }
    }
    return FALSE;
}

static void scan(Reader *reader, guint64 offset, guint64 end)
{
    while (offset + 8 <= end) {
        gsize peek = (gsize)MIN(PEEK, end - offset);
        GByteArray *bytes = cam_media_file_bytes(reader->file, offset, peek, PEEK);
        CamBytes in = {bytes ? bytes->data : NULL, bytes ? bytes->len : 0, FALSE};
        guint32 id = cam_bytes_le32(&in), size = cam_bytes_le32(&in);
        Stream *stream = stream_of(reader, id);
        gboolean go_on = bytes && size <= end - offset - 8 && ++reader->scanned < MAX_CHUNKS;

        if (go_on && stream)
            go_on = add_chunk(reader, stream, offset + 8, size,
                              looks_like_key(stream->track, in.data, MIN(in.left, size)));
        g_clear_pointer(&bytes, g_byte_array_unref);
        if (!go_on)
            return;
        /* What is in a list counts too. */
        offset += id == LIST ? 12 : 8 + (guint64)size + size % 2;
    }
}

static gboolean is_chunk_at(Reader *reader, guint64 offset, guint32 id, guint32 size)
{
    GByteArray *bytes = cam_media_file_bytes(reader->file, offset, 8, 8);
    CamBytes in = {bytes ? bytes->data : NULL, bytes ? bytes->len : 0, FALSE};
    gboolean same = cam_bytes_le32(&in) == id && cam_bytes_le32(&in) == size;

    g_clear_pointer(&bytes, g_byte_array_unref);
    return same;
}

static void read_index(Reader *reader, CamBytes index)
{
    guint64 base = reader->movi - 4;

    for (gboolean first = TRUE; index.left >= 16; first = FALSE) {
        guint32 id = cam_bytes_le32(&index), flags = cam_bytes_le32(&index);
        guint64 offset = cam_bytes_le32(&index);
        guint32 size = cam_bytes_le32(&index);
        Stream *stream = stream_of(reader, id);

        /* From the list on, or from the file's beginning. */
        if (first && !is_chunk_at(reader, base + offset, id, size))
            base = 0;
        if (first && !is_chunk_at(reader, base + offset, id, size))
            return;
        reader->indexed = TRUE;
        if (stream && !add_chunk(reader, stream, base + offset + 8, size,
                                 flags & 16 || stream->track->codec != CAM_CODEC_H264))
            return;
    }
}

static void read_bytes(Reader *reader, guint64 offset, guint64 size, guint64 max,
                       void (*read)(Reader *reader, CamBytes in))
{
    GByteArray *bytes = cam_media_file_bytes(reader->file, offset, size, max);

    if (bytes)
        read(reader, (CamBytes){bytes->data, bytes->len, FALSE});
    g_clear_pointer(&bytes, g_byte_array_unref);
}

/* The lists and chunks of one RIFF. */
static void read_riff(Reader *reader, guint64 offset, guint64 end, gboolean first)
{
    for (int n = 0; offset + 12 <= end && n < MAX_LISTS; n++) {
        GByteArray *bytes = cam_media_file_bytes(reader->file, offset, 12, 12);
        CamBytes in = {bytes ? bytes->data : NULL, bytes ? bytes->len : 0, FALSE};
        guint32 id = cam_bytes_le32(&in), size = cam_bytes_le32(&in), type = cam_bytes_le32(&in);
        /* A file that is cut off, or still written, has no right sizes. */
        guint64 body_end = size && size <= end - offset - 8 ? offset + 8 + size : end;

        g_clear_pointer(&bytes, g_byte_array_unref);
        if (id == LIST && type == FOURCC('h', 'd', 'r', 'l')) {
            read_bytes(reader, offset + 12, body_end - offset - 12, MAX_HEADER_BYTES, read_header);
        } else if (id == LIST && type == FOURCC('m', 'o', 'v', 'i') && first && !reader->movi) {
            reader->movi = offset + 12;
            reader->movi_end = body_end;
        } else if (id == LIST && type == FOURCC('m', 'o', 'v', 'i')) {
            scan(reader, offset + 12, body_end);
        } else if (id == FOURCC('i', 'd', 'x', '1') && reader->movi && !reader->indexed) {
            read_bytes(reader, offset + 8, body_end - offset - 8, MAX_INDEX_BYTES, read_index);
        }
        offset = body_end + body_end % 2;
    }
    if (first && reader->movi && !reader->indexed)
        scan(reader, reader->movi, reader->movi_end);
}

gboolean cam_avi_index(CamMediaFile *file)
{
    Reader reader = {.file = file};
    guint64 offset = 0;

    while (offset + 12 <= file->size) {
        GByteArray *bytes = cam_media_file_bytes(file, offset, 12, 12);
        CamBytes in = {bytes ? bytes->data : NULL, bytes ? bytes->len : 0, FALSE};
        guint32 id = cam_bytes_le32(&in), size = cam_bytes_le32(&in);
        guint64 end = size && size <= file->size - offset - 8 ? offset + 8 + size : file->size;

        g_clear_pointer(&bytes, g_byte_array_unref);
        if (id != RIFF)
            break;
        read_riff(&reader, offset + 12, end, offset == 0);
        offset = end + end % 2;
    }
    return reader.movi != 0;
}
