/* MP4: the sample tables of a whole file, and those of fragments as far as they go. */
#include "bytes.h"
#include "media_file.h"

#define MAX_MOOV_BYTES (96u << 20)
#define MAX_MOOF_BYTES (8u << 20)
#define MAX_TRACKS 16
#define MAX_BOXES 2000000
#define BOX(a, b, c, d) ((guint32)(a) << 24 | (guint32)(b) << 16 | (guint32)(c) << 8 | (guint32)(d))

/* Of a track that is used, while its file is read. */
typedef struct {
    guint32 id;
    CamTrack *track; /* NULL: not used */
    gint64 shift;    /* by the edit list: what is added to each time */
    gint64 next_dts; /* of the fragment that follows */
    guint32 default_duration, default_size, default_flags; /* trex */
} Trak;

typedef struct {
    CamMediaFile *file;
    Trak traks[MAX_TRACKS];
    guint n_traks;
} Reader;

/* The next box of IN; FALSE: there is none. */
static gboolean next_box(CamBytes *in, guint32 *type, CamBytes *body)
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

/* The first box of that type in IN. */
static CamBytes find_box(CamBytes in, guint32 wanted)
{
    CamBytes body;
    guint32 type;

    while (next_box(&in, &type, &body)) {
        if (type == wanted)
            return body;
    }
    return (CamBytes){.over = TRUE};
}

static void append_set(GByteArray *out, CamBytes *in)
{
    static const guint8 start_code[4] = {0, 0, 0, 1};
    guint16 length = cam_bytes_be16(in);
    CamBytes set = cam_bytes_part(in, length);

    if (in->over)
        return;
    g_byte_array_append(out, start_code, sizeof(start_code));
    g_byte_array_append(out, set.data, (guint)set.left);
}

static gboolean read_avcc(CamTrack *track, CamBytes in)
{
    cam_bytes_skip(&in, 4);
    track->length_size = (cam_bytes_u8(&in) & 3) + 1;
    for (int n = cam_bytes_u8(&in) & 31; n > 0 && !in.over; n--)
        append_set(track->parameter_sets, &in);
    for (int n = cam_bytes_u8(&in); n > 0 && !in.over; n--)
        append_set(track->parameter_sets, &in);
    return !in.over;
}

static gboolean read_hvcc(CamTrack *track, CamBytes in)
{
    int arrays;

    cam_bytes_skip(&in, 21);
    track->length_size = (cam_bytes_u8(&in) & 3) + 1;
    arrays = cam_bytes_u8(&in);
    for (; arrays > 0 && !in.over; arrays--) {
        cam_bytes_skip(&in, 1);
        for (int n = cam_bytes_be16(&in); n > 0 && !in.over; n--)
            append_set(track->parameter_sets, &in);
    }
    return !in.over;
}

/* The length of an MPEG-4 descriptor: seven bits a byte. */
static guint32 descriptor_length(CamBytes *in)
{
    guint32 length = 0;
    guint8 byte;
    int n = 0;

    do {
        byte = cam_bytes_u8(in);
        length = length << 7 | (byte & 127);
    } while (byte & 128 && ++n < 4);
    return length;
}

static void read_esds(CamTrack *track, CamBytes in)
{
    guint8 flags, object;

    cam_bytes_skip(&in, 4);
    if (cam_bytes_u8(&in) != 3)
        return;
    descriptor_length(&in);
    cam_bytes_skip(&in, 2);
    flags = cam_bytes_u8(&in);
    cam_bytes_skip(&in, flags & 128 ? 2 : 0);
    cam_bytes_skip(&in, flags & 64 ? cam_bytes_u8(&in) : 0);
    cam_bytes_skip(&in, flags & 32 ? 2 : 0);
    if (cam_bytes_u8(&in) != 4)
        return;
    descriptor_length(&in);
    object = cam_bytes_u8(&in);
    if (object == 0x6b || object == 0x69)
        track->codec = CAM_CODEC_MP3;
    cam_bytes_skip(&in, 12);
    if (object == 0x40 && cam_bytes_u8(&in) == 5) {
        guint32 length = descriptor_length(&in);
        CamBytes data = cam_bytes_part(&in, length);

        if (in.over || data.left < 2 || data.left > 64)
            return;
        track->codec = CAM_CODEC_AAC;
        g_byte_array_append(track->codec_data, data.data, (guint)data.left);
    }
}

static void read_video_entry(CamTrack *track, guint32 format, CamBytes in)
{
    gboolean h265 = format == BOX('h', 'v', 'c', '1') || format == BOX('h', 'e', 'v', '1');
    CamBytes config;

    cam_bytes_skip(&in, 24);
    track->width = cam_bytes_be16(&in);
    track->height = cam_bytes_be16(&in);
    cam_bytes_skip(&in, 50);
    config = find_box(in, h265 ? BOX('h', 'v', 'c', 'C') : BOX('a', 'v', 'c', 'C'));
    if (config.over)
        return;
    if (h265 && read_hvcc(track, config))
        track->codec = CAM_CODEC_H265;
    else if (!h265 && read_avcc(track, config))
        track->codec = CAM_CODEC_H264;
}

static void read_audio_entry(CamTrack *track, CamBytes in)
{
    int version;
    CamBytes esds;

    cam_bytes_skip(&in, 8);
    version = cam_bytes_be16(&in);
    cam_bytes_skip(&in, 6);
    track->channels = cam_bytes_be16(&in);
    cam_bytes_skip(&in, 6);
    track->rate = (int)(cam_bytes_be32(&in) >> 16);
    cam_bytes_skip(&in, version == 1 ? 16 : 0);
    esds = find_box(in, BOX('e', 's', 'd', 's'));
    if (!esds.over)
        read_esds(track, esds);
}

static void read_description(CamTrack *track, CamTrackKind kind, CamBytes stsd)
{
    CamBytes entry;
    guint32 format;

    cam_bytes_skip(&stsd, 8);
    if (!next_box(&stsd, &format, &entry))
        return;
    if (kind == CAM_TRACK_VIDEO)
        read_video_entry(track, format, entry);
    else if (format == BOX('m', 'p', '4', 'a'))
        read_audio_entry(track, entry);
    else if (format == BOX('.', 'm', 'p', '3')) {
        read_audio_entry(track, entry);
        track->codec = CAM_CODEC_MP3;
    }
}

/* A table whose entries of one count and one value each say how many samples have that value. */
typedef struct {
    CamBytes in;
    guint32 entries, run;
    gint32 value;
} Runs;

static Runs runs_open(CamBytes stbl, guint32 type)
{
    Runs runs = {.in = find_box(stbl, type)};

    cam_bytes_skip(&runs.in, 4);
    runs.entries = cam_bytes_be32(&runs.in);
    return runs;
}

/* 0 behind the end. */
static gint32 runs_next(Runs *runs)
{
    while (runs->run == 0 && runs->entries > 0 && !runs->in.over) {
        runs->entries--;
        runs->run = cam_bytes_be32(&runs->in);
        runs->value = (gint32)cam_bytes_be32(&runs->in);
    }
    if (runs->run == 0 || runs->in.over)
        return 0;
    runs->run--;
    return runs->value;
}

/* Which samples are key frames: no table, all. */
typedef struct {
    CamBytes in;
    gboolean all;
    guint32 next; /* counted from 1; 0: no more */
} Keys;

static Keys keys_open(CamBytes stbl)
{
    Keys keys = {.in = find_box(stbl, BOX('s', 't', 's', 's'))};

    keys.all = keys.in.over;
    cam_bytes_skip(&keys.in, 8);
    keys.next = cam_bytes_be32(&keys.in);
    return keys;
}

static gboolean keys_has(Keys *keys, guint32 sample)
{
    if (keys->all)
        return TRUE;
    while (!keys->in.over && keys->next < sample)
        keys->next = cam_bytes_be32(&keys->in);
    return !keys->in.over && keys->next == sample;
}

/* How many samples each chunk has. */
typedef struct {
    CamBytes in;
    guint32 left, per_chunk, next_first, next_count;
} Chunks;

static void chunks_read(Chunks *chunks)
{
    chunks->next_first = 0;
    if (chunks->left == 0)
        return;
    chunks->left--;
    chunks->next_first = cam_bytes_be32(&chunks->in);
    chunks->next_count = cam_bytes_be32(&chunks->in);
    cam_bytes_skip(&chunks->in, 4);
}

static guint32 chunks_count(Chunks *chunks, guint32 chunk)
{
    while (!chunks->in.over && chunks->next_first && chunks->next_first <= chunk) {
        chunks->per_chunk = chunks->next_count;
        chunks_read(chunks);
    }
    return chunks->per_chunk;
}

/* The samples that moov itself describes; a fragmented file has none there. */
static void read_samples(Reader *reader, Trak *trak, CamBytes stbl)
{
    CamBytes sizes = find_box(stbl, BOX('s', 't', 's', 'z'));
    CamBytes offsets = find_box(stbl, BOX('s', 't', 'c', 'o'));
    gboolean wide = offsets.over;
    Runs durations = runs_open(stbl, BOX('s', 't', 't', 's'));
    Runs lags = runs_open(stbl, BOX('c', 't', 't', 's'));
    Keys keys = keys_open(stbl);
    Chunks chunks = {.in = find_box(stbl, BOX('s', 't', 's', 'c'))};
    guint32 one_size, n_samples, n_chunks, sample = 0;

    if (wide)
        offsets = find_box(stbl, BOX('c', 'o', '6', '4'));
    cam_bytes_skip(&sizes, 4);
    one_size = cam_bytes_be32(&sizes);
    n_samples = cam_bytes_be32(&sizes);
    cam_bytes_skip(&offsets, 4);
    n_chunks = cam_bytes_be32(&offsets);
    cam_bytes_skip(&chunks.in, 4);
    chunks.left = cam_bytes_be32(&chunks.in);
    chunks_read(&chunks);
    for (guint32 chunk = 1; chunk <= n_chunks && sample < n_samples && !offsets.over; chunk++) {
        guint64 at = wide ? cam_bytes_be64(&offsets) : cam_bytes_be32(&offsets);

        for (guint32 n = chunks_count(&chunks, chunk); n > 0 && sample < n_samples; n--) {
            CamUnit unit = {.offset = at, .lag = runs_next(&lags)};
            guint32 size = one_size ? one_size : cam_bytes_be32(&sizes);

            unit.size = size & 0x7fffffff;
            unit.key = keys_has(&keys, ++sample);
            unit.pts = trak->next_dts + unit.lag + trak->shift;
            if (offsets.over || sizes.over || size != unit.size ||
                !cam_track_add(reader->file, trak->track, &unit))
                return;
            at += size;
            trak->next_dts += (guint32)runs_next(&durations);
            trak->track->end = trak->next_dts + trak->shift;
        }
    }
}

/* Silence at the start delays, a start inside the media skips. */
static void read_edits(Trak *trak, CamBytes elst, guint32 movie_scale)
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

static void read_trak(Reader *reader, CamBytes trak_box, guint32 movie_scale)
{
    CamBytes header = find_box(trak_box, BOX('t', 'k', 'h', 'd'));
    CamBytes media = find_box(trak_box, BOX('m', 'd', 'i', 'a'));
    CamBytes media_header = find_box(media, BOX('m', 'd', 'h', 'd'));
    CamBytes handler = find_box(media, BOX('h', 'd', 'l', 'r'));
    CamBytes tables = find_box(find_box(media, BOX('m', 'i', 'n', 'f')), BOX('s', 't', 'b', 'l'));
    CamBytes edits = find_box(find_box(trak_box, BOX('e', 'd', 't', 's')), BOX('e', 'l', 's', 't'));
    guint32 handler_type;
    CamTrackKind kind;
    Trak *trak;

    if (reader->n_traks == MAX_TRACKS || header.over || tables.over)
        return;
    cam_bytes_skip(&header, cam_bytes_u8(&header) == 1 ? 19 : 11);
    cam_bytes_skip(&handler, 8);
    handler_type = cam_bytes_be32(&handler);
    kind = handler_type == BOX('v', 'i', 'd', 'e') ? CAM_TRACK_VIDEO : CAM_TRACK_AUDIO;
    trak = &reader->traks[reader->n_traks++];
    trak->id = cam_bytes_be32(&header);
    if ((kind == CAM_TRACK_AUDIO && handler_type != BOX('s', 'o', 'u', 'n')) ||
        reader->file->track[kind].codec != CAM_CODEC_NONE)
        return;
    trak->track = &reader->file->track[kind];
    cam_bytes_skip(&media_header, cam_bytes_u8(&media_header) == 1 ? 19 : 11);
    trak->track->time_scale = cam_bytes_be32(&media_header);
    read_description(trak->track, kind, find_box(tables, BOX('s', 't', 's', 'd')));
    if (!edits.over)
        read_edits(trak, edits, movie_scale);
    read_samples(reader, trak, tables);
}

static Trak *find_trak(Reader *reader, guint32 id)
{
    for (guint i = 0; i < reader->n_traks; i++) {
        if (reader->traks[i].id == id && reader->traks[i].track)
            return &reader->traks[i];
    }
    return NULL;
}

static void read_trex(Reader *reader, CamBytes in)
{
    Trak *trak;

    cam_bytes_skip(&in, 4);
    trak = find_trak(reader, cam_bytes_be32(&in));
    cam_bytes_skip(&in, 4);
    if (!trak)
        return;
    trak->default_duration = cam_bytes_be32(&in);
    trak->default_size = cam_bytes_be32(&in);
    trak->default_flags = cam_bytes_be32(&in);
}

static void read_moov(Reader *reader, CamBytes moov)
{
    CamBytes movie_header = find_box(moov, BOX('m', 'v', 'h', 'd'));
    CamBytes extends = find_box(moov, BOX('m', 'v', 'e', 'x'));
    CamBytes body;
    guint32 movie_scale, type;

    cam_bytes_skip(&movie_header, cam_bytes_u8(&movie_header) == 1 ? 19 : 11);
    movie_scale = cam_bytes_be32(&movie_header);
    while (next_box(&moov, &type, &body)) {
        if (type == BOX('t', 'r', 'a', 'k'))
            read_trak(reader, body, movie_scale);
    }
    while (next_box(&extends, &type, &body)) {
        if (type == BOX('t', 'r', 'e', 'x'))
            read_trex(reader, body);
    }
}

typedef struct {
    guint64 base;
    guint32 duration, size, flags;
} FragmentDefaults;

static FragmentDefaults read_tfhd(const Trak *trak, CamBytes in, guint32 flags, guint64 moof)
{
    FragmentDefaults defaults = {moof, trak->default_duration, trak->default_size,
                                 trak->default_flags};

    if (flags & 0x1)
        defaults.base = cam_bytes_be64(&in);
    if (flags & 0x2)
        cam_bytes_skip(&in, 4);
    if (flags & 0x8)
        defaults.duration = cam_bytes_be32(&in);
    if (flags & 0x10)
        defaults.size = cam_bytes_be32(&in);
    if (flags & 0x20)
        defaults.flags = cam_bytes_be32(&in);
    return defaults;
}

/* FALSE: the file ends in its middle. */
static gboolean read_trun(Reader *reader, Trak *trak, CamBytes in, const FragmentDefaults *defaults,
                          guint64 *at)
{
    guint32 flags = cam_bytes_be32(&in) & 0xffffff, count = cam_bytes_be32(&in), first_flags;

    if (flags & 0x1)
        *at = defaults->base + (guint64)(gint64)(gint32)cam_bytes_be32(&in);
    first_flags = flags & 0x4 ? cam_bytes_be32(&in) : defaults->flags;
    for (guint32 i = 0; i < count; i++) {
        guint32 duration = flags & 0x100 ? cam_bytes_be32(&in) : defaults->duration;
        guint32 size = flags & 0x200 ? cam_bytes_be32(&in) : defaults->size;
        guint32 own_flags = flags & 0x400 ? cam_bytes_be32(&in)
                            : i == 0      ? first_flags
                                          : defaults->flags;
        CamUnit unit = {.offset = *at, .size = size & 0x7fffffff, .key = !(own_flags & 0x10000)};

        unit.lag = flags & 0x800 ? (gint32)cam_bytes_be32(&in) : 0;
        unit.pts = trak->next_dts + unit.lag + trak->shift;
        if (in.over || size != unit.size || !cam_track_add(reader->file, trak->track, &unit))
            return FALSE;
        *at += size;
        trak->next_dts += duration;
        trak->track->end = trak->next_dts + trak->shift;
    }
    return TRUE;
}

static gboolean read_traf(Reader *reader, CamBytes traf, guint64 moof)
{
    CamBytes head = find_box(traf, BOX('t', 'f', 'h', 'd'));
    CamBytes time = find_box(traf, BOX('t', 'f', 'd', 't'));
    guint32 flags = cam_bytes_be32(&head) & 0xffffff, type;
    Trak *trak = find_trak(reader, cam_bytes_be32(&head));
    FragmentDefaults defaults;
    CamBytes body;
    guint64 at;

    if (!trak || head.over)
        return TRUE;
    defaults = read_tfhd(trak, head, flags, moof);
    if (!time.over) {
        guint32 version = cam_bytes_be32(&time) >> 24;
        guint64 start = version == 1 ? cam_bytes_be64(&time) : cam_bytes_be32(&time);

        if (!time.over && start < G_MAXINT64 / 4 && (gint64)start >= trak->next_dts)
            trak->next_dts = (gint64)start;
    }
    at = defaults.base;
    while (next_box(&traf, &type, &body)) {
        if (type == BOX('t', 'r', 'u', 'n') && !read_trun(reader, trak, body, &defaults, &at))
            return FALSE;
    }
    return TRUE;
}

static gboolean read_moof(Reader *reader, CamBytes moof, guint64 offset)
{
    CamBytes body;
    guint32 type;

    while (next_box(&moof, &type, &body)) {
        if (type == BOX('t', 'r', 'a', 'f') && !read_traf(reader, body, offset))
            return FALSE;
    }
    return TRUE;
}

/* FALSE: nothing that follows can be used. */
static gboolean read_top(Reader *reader, guint32 type, guint64 offset, guint64 header, guint64 size)
{
    gboolean moov = type == BOX('m', 'o', 'o', 'v'), go_on = TRUE;
    GByteArray *bytes;

    if (!moov && type != BOX('m', 'o', 'o', 'f'))
        return TRUE;
    bytes = cam_media_file_bytes(reader->file, offset + header, size - header,
                                 moov ? MAX_MOOV_BYTES : MAX_MOOF_BYTES);
    if (!bytes)
        return FALSE;
    if (moov && reader->n_traks == 0)
        read_moov(reader, (CamBytes){bytes->data, bytes->len, FALSE});
    else if (!moov)
        go_on = read_moof(reader, (CamBytes){bytes->data, bytes->len, FALSE}, offset);
    g_byte_array_unref(bytes);
    return go_on;
}

gboolean cam_mp4_index(CamMediaFile *file)
{
    Reader reader = {.file = file};
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
