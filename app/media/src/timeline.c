#include "timeline.h"
#include "log.h"

#include <sys/stat.h>

struct _CamTimeline {
    gint refs;
    GArray *parts; /* of CamPart */
    GstClockTime duration;
    CamCodec codec[CAM_N_TRACKS];
    int width, height, rate, channels;
    GstCaps *caps[CAM_N_TRACKS];
};

struct _CamCursor {
    CamTimeline *timeline;
    CamTrackKind kind;
    CamMediaFile *file; /* of the part; NULL: not open */
    guint part, next;
};

static void part_clear(gpointer data)
{
    g_free(((CamPart *)data)->path);
}

static const CamPart *part_at(CamTimeline *self, guint i)
{
    return &g_array_index(self->parts, CamPart, i);
}

/* Opens the file only where it must: for the first part, and where no duration is known. */
static gboolean add_part(CamTimeline *self, const char *path, GstClockTime duration, char **message)
{
    CamPart part = {.start = self->duration, .duration = duration};
    gboolean first = self->parts->len == 0;
    CamMediaFile *file;

    if (first || !duration) {
        file = cam_media_file_open(path, message);
        if (!file)
            return FALSE;
        if (!duration)
            part.duration =
                cam_track_time(&file->track[CAM_TRACK_VIDEO], file->track[CAM_TRACK_VIDEO].end);
        for (int i = 0; first && i < CAM_N_TRACKS; i++) {
            self->codec[i] = file->track[i].codec;
            self->caps[i] = cam_track_caps(&file->track[i]);
        }
        if (first) {
            self->width = file->track[CAM_TRACK_VIDEO].width;
            self->height = file->track[CAM_TRACK_VIDEO].height;
            self->rate = file->track[CAM_TRACK_AUDIO].rate;
            self->channels = file->track[CAM_TRACK_AUDIO].channels;
        }
        cam_media_file_free(file);
    }
    part.path = g_strdup(path);
    self->duration += part.duration;
    g_array_append_val(self->parts, part);
    return TRUE;
}

CamTimeline *cam_timeline_new(const char *const *paths, const GstClockTime *durations,
                              char **message)
{
    CamTimeline *self = g_new0(CamTimeline, 1);

    self->refs = 1;
    self->parts = g_array_new(FALSE, FALSE, sizeof(CamPart));
    g_array_set_clear_func(self->parts, part_clear);
    for (guint i = 0; paths[i]; i++) {
        if (!add_part(self, paths[i], durations[i], message)) {
            cam_timeline_unref(self);
            return NULL;
        }
    }
    return self;
}

CamTimeline *cam_timeline_ref(CamTimeline *self)
{
    g_atomic_int_inc(&self->refs);
    return self;
}

void cam_timeline_unref(CamTimeline *self)
{
    if (!g_atomic_int_dec_and_test(&self->refs))
        return;
    g_array_unref(self->parts);
    for (int i = 0; i < CAM_N_TRACKS; i++)
        g_clear_pointer(&self->caps[i], gst_caps_unref);
    g_free(self);
}

GstClockTime cam_timeline_duration(CamTimeline *self)
{
    return self->duration;
}

CamCodec cam_timeline_codec(CamTimeline *self, CamTrackKind kind)
{
    return self->codec[kind];
}

GstCaps *cam_timeline_caps(CamTimeline *self, CamTrackKind kind)
{
    return self->caps[kind] ? gst_caps_ref(self->caps[kind]) : NULL;
}

CamCursor *cam_cursor_new(CamTimeline *timeline, CamTrackKind kind)
{
    CamCursor *self = g_new0(CamCursor, 1);

    self->timeline = cam_timeline_ref(timeline);
    self->kind = kind;
    return self;
}

static void close_part(CamCursor *self)
{
    g_clear_pointer(&self->file, cam_media_file_free);
}

void cam_cursor_free(CamCursor *self)
{
    close_part(self);
    cam_timeline_unref(self->timeline);
    g_free(self);
}

static gboolean fits(CamTimeline *timeline, CamTrackKind kind, const CamTrack *track)
{
    if (track->codec == CAM_CODEC_NONE || track->codec != timeline->codec[kind])
        return FALSE;
    return kind == CAM_TRACK_VIDEO
               ? track->width == timeline->width && track->height == timeline->height
               : track->rate == timeline->rate && track->channels == timeline->channels;
}

/* FALSE: there is no such part, or it cannot be read. */
static gboolean open_part(CamCursor *self, guint part)
{
    g_autofree char *message = NULL;

    if (self->file && self->part == part)
        return TRUE;
    close_part(self);
    self->part = part;
    if (part >= self->timeline->parts->len)
        return FALSE;
    self->file = cam_media_file_open(part_at(self->timeline, part)->path, &message);
    if (!self->file) {
        cam_log(CAM_LOG_WARN, "playback", "a part cannot be read: %s", message);
    } else if (!fits(self->timeline, self->kind, &self->file->track[self->kind])) {
        cam_log(CAM_LOG_WARN, "playback", "a part is of another kind than the first one");
        close_part(self);
    }
    return self->file != NULL;
}

static guint part_of(CamTimeline *timeline, GstClockTime time)
{
    guint part = 0;

    while (part + 1 < timeline->parts->len && part_at(timeline, part + 1)->start <= time)
        part++;
    return part;
}

static const CamUnit *next_unit(CamCursor *self)
{
    const CamTrack *track = &self->file->track[self->kind];

    return self->next < track->units->len ? &g_array_index(track->units, CamUnit, self->next)
                                          : NULL;
}

/* The first unit of sound that begins at TIME or later; the last one when there is none. */
static guint unit_from(const CamTrack *track, GstClockTime time)
{
    guint i = cam_track_key_before(track, time);

    while (i + 1 < track->units->len &&
           cam_track_time(track, g_array_index(track->units, CamUnit, i).pts) < time)
        i++;
    return i;
}

GstClockTime cam_cursor_seek(CamCursor *self, GstClockTime time)
{
    guint part = part_of(self->timeline, time);
    const CamPart *place = part_at(self->timeline, part);
    GstClockTime within = time - MIN(time, place->start);
    const CamTrack *track;

    if (!open_part(self, part))
        return GST_CLOCK_TIME_NONE;
    track = &self->file->track[self->kind];
    self->next = self->kind == CAM_TRACK_VIDEO ? cam_track_key_before(track, within)
                                               : unit_from(track, within);
    return place->start + cam_track_time(track, next_unit(self)->pts);
}

GstClockTime cam_cursor_shown_at(CamCursor *self, GstClockTime time)
{
    guint part = part_of(self->timeline, time);
    const CamPart *place = part_at(self->timeline, part);
    const CamTrack *track;
    guint i;

    if (!open_part(self, part))
        return GST_CLOCK_TIME_NONE;
    track = &self->file->track[self->kind];
    i = cam_track_unit_at(track, time - MIN(time, place->start));
    return place->start + cam_track_time(track, g_array_index(track->units, CamUnit, i).pts);
}

gboolean cam_cursor_is_at_key(CamCursor *self)
{
    const CamUnit *unit = self->file ? next_unit(self) : NULL;

    /* Each part begins with one. */
    return !unit || unit->key;
}

/* What was deleted is not played to its end: its bytes are free only when nobody holds them. */
static gboolean is_deleted(CamCursor *self)
{
    struct stat info;

    return fstat(self->file->fd, &info) != 0 || info.st_nlink == 0;
}

GstBuffer *cam_cursor_next(CamCursor *self, gboolean keys_only)
{
    const CamUnit *unit;
    GstBuffer *buffer;
    GstClockTime start;

    if (!self->file && !open_part(self, self->part))
        return NULL;
    while (!(unit = next_unit(self)) || (keys_only && !unit->key)) {
        self->next++;
        if (unit)
            continue;
        if (!open_part(self, self->part + 1))
            return NULL;
        self->next = 0;
    }
    if (unit->key && is_deleted(self))
        return NULL;
    buffer = cam_media_file_read(self->file, self->kind, self->next++);
    if (!buffer)
        return NULL;
    start = part_at(self->timeline, self->part)->start;
    GST_BUFFER_PTS(buffer) += start;
    GST_BUFFER_DTS(buffer) += start;
    return buffer;
}
