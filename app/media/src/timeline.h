/* The parts of a recording, one behind the other, as one time line. */
#pragma once

#include "media_file.h"

typedef struct {
    char *path;
    GstClockTime start, duration;
} CamPart;

/* Does not change once made; shared between threads. */
typedef struct _CamTimeline CamTimeline;

/* PATHS ends with NULL; a duration of 0 is read from the file. NULL: *MESSAGE (free it) says why.
 */
CamTimeline *cam_timeline_new(const char *const *paths, const GstClockTime *durations,
                              char **message);
CamTimeline *cam_timeline_ref(CamTimeline *timeline);
void cam_timeline_unref(CamTimeline *timeline);

GstClockTime cam_timeline_duration(CamTimeline *timeline);
/* Of the first part, and what the others must be too; CAM_CODEC_NONE: there is no such track. */
CamCodec cam_timeline_codec(CamTimeline *timeline, CamTrackKind kind);
/* NULL for a track that there is not. */
GstCaps *cam_timeline_caps(CamTimeline *timeline, CamTrackKind kind);

/* Reads one track; one thread at a time. */
typedef struct _CamCursor CamCursor;

CamCursor *cam_cursor_new(CamTimeline *timeline, CamTrackKind kind);
void cam_cursor_free(CamCursor *cursor);

/* Video goes on with the key frame at or before TIME, sound with what begins there or later.
 * Returns where that is; GST_CLOCK_TIME_NONE: nowhere. */
GstClockTime cam_cursor_seek(CamCursor *cursor, GstClockTime time);
/* When the picture begins that is shown at TIME; GST_CLOCK_TIME_NONE: there is none. */
GstClockTime cam_cursor_shown_at(CamCursor *cursor, GstClockTime time);
/* Is the next unit a key frame (or the end)? */
gboolean cam_cursor_is_at_key(CamCursor *cursor);
/* The next unit (with KEYS_ONLY: the next key frame), its times on the time line. NULL: the end, or
 * a part that is gone, damaged or not of the first one's kind. */
GstBuffer *cam_cursor_next(CamCursor *cursor, gboolean keys_only);
