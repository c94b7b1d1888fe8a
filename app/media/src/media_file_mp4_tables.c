/* MP4: the sample tables of a whole file. */
#include "media_file_mp4_private.h"

/* A table whose entries of one count and one value each say how many samples have that value. */
typedef struct {
    CamBytes in;
    guint32 entries, run;
    gint32 value;
} Runs;

static Runs runs_open(CamBytes stbl, guint32 type)
{
    Runs runs = {.in = cam_mp4_find_box(stbl, type)};

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
    Keys keys = {.in = cam_mp4_find_box(stbl, CAM_MP4_BOX('s', 't', 's', 's'))};

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

void cam_mp4_read_samples(CamMp4Reader *reader, CamMp4Trak *trak, CamBytes stbl)
{
    CamBytes sizes = cam_mp4_find_box(stbl, CAM_MP4_BOX('s', 't', 's', 'z'));
    CamBytes offsets = cam_mp4_find_box(stbl, CAM_MP4_BOX('s', 't', 'c', 'o'));
    gboolean wide = offsets.over;
    Runs durations = runs_open(stbl, CAM_MP4_BOX('s', 't', 't', 's'));
    Runs lags = runs_open(stbl, CAM_MP4_BOX('c', 't', 't', 's'));
    Keys keys = keys_open(stbl);
    Chunks chunks = {.in = cam_mp4_find_box(stbl, CAM_MP4_BOX('s', 't', 's', 'c'))};
    guint32 one_size, n_samples, n_chunks, sample = 0;

    if (wide)
        offsets = cam_mp4_find_box(stbl, CAM_MP4_BOX('c', 'o', '6', '4'));
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
