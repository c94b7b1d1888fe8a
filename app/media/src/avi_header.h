/* The bytes of an AVI file that are no media. */
#pragma once

#include "container.h"

typedef struct {
    guint64 movi_end, file_end; /* offsets; the same while there is no index */
    guint32 frames, audio_units;
    guint64 audio_bytes;
    guint32 largest_frame, largest_audio;
} CamAviTotals;

/* From RIFF to the first chunk of movi; always as long for a FORMAT. */
GByteArray *cam_avi_header(const CamContainerFormat *format, const CamAviTotals *totals);
/* Where the movi list's tag stands: offsets in the index count from there. */
guint32 cam_avi_movi_offset(const GByteArray *header);
void cam_avi_put32(GByteArray *bytes, guint32 value);
void cam_avi_put_tag(GByteArray *bytes, const char *tag);
