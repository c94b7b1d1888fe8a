/* MP4: the boxes of a file, and its tracks. */
#include "media_file_mp4_private.h"

#define MAX_MOOV_BYTES (96u << 20)
#define MAX_MOOF_BYTES (8u << 20)
#define MAX_BOXES 2000000

gboolean cam_mp4_next_box(CamBytes *in, guint32 *type, CamBytes *body)
{
    guint64 size;
    gsize header = 8;

    if (in->left < header)
        return FALSE;
    size = cam_bytes_be32(in);
    *type = cam_bytes_be32(in);
    if (size == 1) {
        size = cam_bytes_be64(in);
        header = 16;
    } else if (size == 0) {
        size = header + in->left;
    }
    if (in->over || size < header)
        return FALSE;
    *body = cam_bytes_part(in, (gsize)MIN(size - header, (guint64)in->left));
    return TRUE;
}

CamBytes cam_mp4_find_box(CamBytes in, guint32 wanted)
{
    CamBytes body;
    guint32 type;

    while (cam_mp4_next_box(&in, &type, &body)) {
        if (type == wanted)
            return body;
    }
    return (CamBytes){.over = TRUE};
}

CamMp4Trak *cam_mp4_find_trak(CamMp4Reader *reader, guint32 id)
{
    for (guint i = 0; i < reader->n_traks; i++) {
        if (reader->traks[i].id == id && reader->traks[i].track)
            return &reader->traks[i];
    }
    return NULL;
}

/* Silence at the start delays, a start inside the media skips. */
static void read_edits(CamMp4Trak *trak, CamBytes elst, guint32 movie_scale)
{
    guint8 version = cam_bytes_u8(&elst);
    guint32 entries;
    gint64 delay = 0;

    cam_bytes_skip(&elst, 3);
    entries = cam_bytes_be32(&elst);
    for (; entries > 0 && !elst.over; entries--) {
        guint64 duration = version == 1 ? cam_bytes_be64(&elst) : cam_bytes_be32(&elst);
        gint64 start = version == 1 ? (gint64)cam_bytes_be64(&elst) : (gint32)cam_bytes_be32(&elst);

        cam_bytes_skip(&elst, 4);
        if (elst.over || !movie_scale)
            return;
        if (start >= 0) {
            trak->shift = start < G_MAXINT32 ? delay - start : 0;
            return;
        }
        delay += (gint64)MIN(gst_util_uint64_scale(duration, trak->track->time_scale, movie_scale),
                             (guint64)G_MAXINT32);
    }
}

static void read_trak(CamMp4Reader *reader, CamBytes trak_box, guint32 movie_scale)
{
    CamBytes header = cam_mp4_find_box(trak_box, CAM_MP4_BOX('t', 'k', 'h', 'd'));
    CamBytes media = cam_mp4_find_box(trak_box, CAM_MP4_BOX('m', 'd', 'i', 'a'));
    CamBytes media_header = cam_mp4_find_box(media, CAM_MP4_BOX('m', 'd', 'h', 'd'));
    CamBytes handler = cam_mp4_find_box(media, CAM_MP4_BOX('h', 'd', 'l', 'r'));
    CamBytes tables = cam_mp4_find_box(cam_mp4_find_box(media, CAM_MP4_BOX('m', 'i', 'n', 'f')),
                                       CAM_MP4_BOX('s', 't', 'b', 'l'));
    CamBytes edits = cam_mp4_find_box(cam_mp4_find_box(trak_box, CAM_MP4_BOX('e', 'd', 't', 's')),
                                      CAM_MP4_BOX('e', 'l', 's', 't'));
    guint32 handler_type;
    CamTrackKind kind;
    CamMp4Trak *trak;

    if (reader->n_traks == CAM_MP4_MAX_TRACKS || header.over || tables.over)
        return;
    cam_bytes_skip(&header, cam_bytes_u8(&header) == 1 ? 19 : 11);
    cam_bytes_skip(&handler, 8);
    handler_type = cam_bytes_be32(&handler);
    kind = handler_type == CAM_MP4_BOX('v', 'i', 'd', 'e') ? CAM_TRACK_VIDEO : CAM_TRACK_AUDIO;
    trak = &reader->traks[reader->n_traks++];
    trak->id = cam_bytes_be32(&header);
    if ((kind == CAM_TRACK_AUDIO && handler_type != CAM_MP4_BOX('s', 'o', 'u', 'n')) ||
        reader->file->track[kind].codec != CAM_CODEC_NONE)
        return;
    trak->track = &reader->file->track[kind];
    cam_bytes_skip(&media_header, cam_bytes_u8(&media_header) == 1 ? 19 : 11);
    trak->track->time_scale = cam_bytes_be32(&media_header);
    cam_mp4_read_description(trak->track, kind,
                             cam_mp4_find_box(tables, CAM_MP4_BOX('s', 't', 's', 'd')));
    if (!edits.over)
        read_edits(trak, edits, movie_scale);
    cam_mp4_read_samples(reader, trak, tables);
}

static void read_moov(CamMp4Reader *reader, CamBytes moov)
{
    CamBytes movie_header = cam_mp4_find_box(moov, CAM_MP4_BOX('m', 'v', 'h', 'd'));
    CamBytes extends = cam_mp4_find_box(moov, CAM_MP4_BOX('m', 'v', 'e', 'x'));
    CamBytes body;
    guint32 movie_scale, type;

    cam_bytes_skip(&movie_header, cam_bytes_u8(&movie_header) == 1 ? 19 : 11);
    movie_scale = cam_bytes_be32(&movie_header);
    while (cam_mp4_next_box(&moov, &type, &body)) {
        if (type == CAM_MP4_BOX('t', 'r', 'a', 'k'))
            read_trak(reader, body, movie_scale);
    }
    while (cam_mp4_next_box(&extends, &type, &body)) {
        if (type == CAM_MP4_BOX('t', 'r', 'e', 'x'))
            cam_mp4_read_trex(reader, body);
    }
}

/* FALSE: nothing that follows can be used. */
static gboolean read_top(CamMp4Reader *reader, guint32 type, guint64 offset, guint64 header,
                         guint64 size)
{
    gboolean moov = type == CAM_MP4_BOX('m', 'o', 'o', 'v'), go_on = TRUE;
    GByteArray *bytes;

    if (!moov && type != CAM_MP4_BOX('m', 'o', 'o', 'f'))
        return TRUE;
    bytes = cam_media_file_bytes(reader->file, offset + header, size - header,
                                 moov ? MAX_MOOV_BYTES : MAX_MOOF_BYTES);
    if (!bytes)
        return FALSE;
    if (moov && reader->n_traks == 0)
        read_moov(reader, (CamBytes){bytes->data, bytes->len, FALSE});
    else if (!moov)
        go_on = cam_mp4_read_moof(reader, (CamBytes){bytes->data, bytes->len, FALSE}, offset);
    g_byte_array_unref(bytes);
    return go_on;
}

gboolean cam_mp4_index(CamMediaFile *file)
{
    CamMp4Reader reader = {.file = file};
    guint64 offset = 0;

    for (guint n = 0; file->size - offset >= 8 && n < MAX_BOXES; n++) {
        GByteArray *bytes = cam_media_file_bytes(file, offset, MIN(16, file->size - offset), 16);
        CamBytes head = {bytes ? bytes->data : NULL, bytes ? bytes->len : 0, FALSE};
        guint64 size = cam_bytes_be32(&head), header = 8;
        guint32 type = cam_bytes_be32(&head);

        if (size == 1) {
            size = cam_bytes_be64(&head);
            header = 16;
        } else if (size == 0) {
            size = file->size - offset;
        }
        g_clear_pointer(&bytes, g_byte_array_unref);
        if (head.over || size < header || !read_top(&reader, type, offset, header, size) ||
            size > file->size - offset)
            break;
        offset += size;
    }
    return TRUE;
}
