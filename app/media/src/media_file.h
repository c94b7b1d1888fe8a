/* The index of a recorded file, MP4 (also in fragments, also cut off) or AVI: where each unit of
 * its video and its sound lies and when it is shown. Files may be hostile. One thread at a time. */
#pragma once

#include <gst/gst.h>

typedef enum { CAM_TRACK_VIDEO, CAM_TRACK_AUDIO, CAM_N_TRACKS } CamTrackKind;

typedef enum {
    CAM_CODEC_NONE,
    CAM_CODEC_H264,
    CAM_CODEC_H265,
    CAM_CODEC_MJPEG,
    CAM_CODEC_AAC,
    CAM_CODEC_MP3,
    CAM_CODEC_PCM, /* S16LE */
} CamCodec;

typedef struct {
    guint64 offset;
    gint64 pts; /* in units of the track's time scale */
    gint32 lag; /* pts - dts */
    guint32 size : 31;
    guint32 key : 1;
} CamUnit;

typedef struct {
    CamCodec codec; /* NONE: the file has no such track, or of a kind that is not known */
    int width, height, rate, channels;
    guint32 time_scale; /* units per second */
    gint64 end;         /* when the last unit's time is over */
    GArray *units;      /* of CamUnit, in the order of the file's time */
    /* H.264 and H.265 in MP4: the bytes of a length, and the parameter sets as byte-stream. */
    int length_size; /* 0: it is a byte-stream already */
    GByteArray *parameter_sets;
    GByteArray *codec_data; /* AAC */
} CamTrack;

typedef struct {
    int fd;
    guint64 size;
    CamTrack track[CAM_N_TRACKS];
} CamMediaFile;

/* NULL: *MESSAGE (free it) says why. A file that opens has at least one unit of video. */
CamMediaFile *cam_media_file_open(const char *path, char **message);
void cam_media_file_free(CamMediaFile *file);

/* H.264 and H.265 are byte-stream with the parameter sets in front of each key frame, AAC is raw
 * with codec_data. NULL for CAM_CODEC_NONE. */
GstCaps *cam_track_caps(const CamTrack *track);
GstClockTime cam_track_time(const CamTrack *track, gint64 units);
/* The unit that is shown at TIME: the last one at or before it; the first one when there is none.
 */
guint cam_track_unit_at(const CamTrack *track, GstClockTime time);
/* The key unit at or before TIME; the first one when there is none. */
guint cam_track_key_before(const CamTrack *track, GstClockTime time);
/* How long unit I lasts. */
GstClockTime cam_track_unit_duration(const CamTrack *track, guint i);

/* Reads unit I; NULL when it cannot be read. */
GstBuffer *cam_media_file_read(CamMediaFile *file, CamTrackKind kind, guint i);

/* For those who fill an index. FALSE: the unit is empty or does not lie in the file, or there are
 * too many. */
gboolean cam_track_add(CamMediaFile *file, CamTrack *track, const CamUnit *unit);
/* Exactly SIZE bytes from OFFSET on; NULL: not there, or more than MAX. */
GByteArray *cam_media_file_bytes(CamMediaFile *file, guint64 offset, guint64 size, guint64 max);

gboolean cam_mp4_index(CamMediaFile *file);
gboolean cam_avi_index(CamMediaFile *file);
