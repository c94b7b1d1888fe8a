/* MP4: the sample tables of fragments, as far as they go. */
#include "media_file_mp4_private.h"

void cam_mp4_read_trex(CamMp4Reader *reader, CamBytes in)
{
    CamMp4Trak *trak;

    cam_bytes_skip(&in, 4);
    trak = cam_mp4_find_trak(reader, cam_bytes_be32(&in));
    cam_bytes_skip(&in, 4);
    if (!trak)
        return;
    trak->default_duration = cam_bytes_be32(&in);
    trak->default_size = cam_bytes_be32(&in);
    trak->default_flags = cam_bytes_be32(&in);
}

typedef struct {
    guint64 base;
    guint32 duration, size, flags;
} FragmentDefaults;

static FragmentDefaults read_tfhd(const CamMp4Trak *trak, CamBytes in, guint32 flags, guint64 moof)
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
static gboolean read_trun(CamMp4Reader *reader, CamMp4Trak *trak, CamBytes in,
                          const FragmentDefaults *defaults, guint64 *at)
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

static gboolean read_traf(CamMp4Reader *reader, CamBytes traf, guint64 moof)
{
    CamBytes head = cam_mp4_find_box(traf, CAM_MP4_BOX('t', 'f', 'h', 'd'));
    CamBytes time = cam_mp4_find_box(traf, CAM_MP4_BOX('t', 'f', 'd', 't'));
    guint32 flags = cam_bytes_be32(&head) & 0xffffff, type;
    CamMp4Trak *trak = cam_mp4_find_trak(reader, cam_bytes_be32(&head));
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
    while (cam_mp4_next_box(&traf, &type, &body)) {
        if (type == CAM_MP4_BOX('t', 'r', 'u', 'n') &&
            !read_trun(reader, trak, body, &defaults, &at))
            return FALSE;
    }
    return TRUE;
}

gboolean cam_mp4_read_moof(CamMp4Reader *reader, CamBytes moof, guint64 offset)
{
    CamBytes body;
    guint32 type;

    while (cam_mp4_next_box(&moof, &type, &body)) {
        if (type == CAM_MP4_BOX('t', 'r', 'a', 'f') && !read_traf(reader, body, offset))
            return FALSE;
    }
    return TRUE;
}
