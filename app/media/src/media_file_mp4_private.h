/* The parts of the reader of MP4: boxes, descriptions, the tables of a whole file, fragments. */
#pragma once

#include "bytes.h"
#include "media_file.h"

#define CAM_MP4_MAX_TRACKS 16
#define CAM_MP4_BOX(a, b, c, d)                                                                    \
    ((guint32)(a) << 24 | (guint32)(b) << 16 | (guint32)(c) << 8 | (guint32)(d))

/* Of a track that is used, while its file is read. */
typedef struct {
    guint32 id;
    CamTrack *track; /* NULL: not used */
    gint64 shift;    /* by the edit list: what is added to each time */
    gint64 next_dts; /* of the fragment that follows */
    guint32 default_duration, default_size, default_flags; /* trex */
} CamMp4Trak;

typedef struct {
    CamMediaFile *file;
    CamMp4Trak traks[CAM_MP4_MAX_TRACKS];
    guint n_traks;
} CamMp4Reader;

/* The next box of IN; FALSE: there is none. */
gboolean cam_mp4_next_box(CamBytes *in, guint32 *type, CamBytes *body);
/* The first box of that type in IN; none: over. */
CamBytes cam_mp4_find_box(CamBytes in, guint32 wanted);
/* NULL: no track that is used has that number. */
CamMp4Trak *cam_mp4_find_trak(CamMp4Reader *reader, guint32 id);

/* What STSD says of the track: codec, size or rate, parameter sets. */
void cam_mp4_read_description(CamTrack *track, CamTrackKind kind, CamBytes stsd);
/* The samples that moov itself describes; a fragmented file has none there. */
void cam_mp4_read_samples(CamMp4Reader *reader, CamMp4Trak *trak, CamBytes stbl);
/* The defaults of fragments, in moov. */
void cam_mp4_read_trex(CamMp4Reader *reader, CamBytes in);
/* A fragment, whose box lies at OFFSET. FALSE: the file ends in its middle. */
gboolean cam_mp4_read_moof(CamMp4Reader *reader, CamBytes moof, guint64 offset);
