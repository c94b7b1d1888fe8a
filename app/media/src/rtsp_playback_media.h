/* What one RTSP client plays of a recording: its tracks, read as the client takes them, each
 * through a payloader. */
#pragma once

#include "rtsp_media.h"
#include "timeline.h"

GstRTSPMediaFactory *cam_playback_factory_new(CamRtspMediaCreated created, gpointer user_data);

/* The recording's part of a media; NULL: the media is none of a recording. Borrowed. */
typedef struct _CamPlayback CamPlayback;
CamPlayback *cam_playback_of(GstRTSPMedia *media);

/* Where playing begins that is to show what is there at TIME: that picture itself, or the key frame
 * before it where only from there on pictures can be sent. GST_CLOCK_TIME_NONE: nowhere. */
GstClockTime cam_playback_start_for(CamPlayback *playback, GstClockTime time, gdouble rate);

/* Before it plays: what the client has set up is read, and nothing else. */
void cam_playback_see_use(CamPlayback *playback, GstRTSPMedia *media);

CamTimeline *cam_playback_timeline(CamPlayback *playback);

/* How it goes on with the next seek: to the end or up to STOP, at RATE (sound only at 1). */
typedef struct {
    GstClockTime stop; /* GST_CLOCK_TIME_NONE: the end */
    gdouble rate;
} CamPlaybackMode;

void cam_playback_set_mode(CamPlayback *playback, const CamPlaybackMode *mode);
CamPlaybackMode cam_playback_mode(CamPlayback *playback);

/* See rtsp_media.h. */
void cam_playback_set_playing(CamPlayback *playback, gboolean playing);
GstClockTime cam_playback_stuck_for(CamPlayback *playback);
