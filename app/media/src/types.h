/* The values of the protocol that travel between the parts. */
#pragma once

#include <gst/gst.h>
#include <json-glib/json-glib.h>

#define CAM_NAME_MAX 32
#define CAM_MAX_STREAMS 4

typedef struct {
    int width, height, fps;
} CamMode;

typedef enum { CAM_BRIGHTNESS, CAM_CONTRAST, CAM_SATURATION, CAM_N_CONTROLS } CamControl;

#define CAM_CONTROL_NEUTRAL 50

typedef struct {
    int value[CAM_N_CONTROLS]; /* 0…100 */
} CamControls;

/* PCM: S16LE. */
typedef enum {
    CAM_AUDIO_AAC,
    CAM_AUDIO_OPUS,
    CAM_AUDIO_PCMU,
    CAM_AUDIO_MP3,
    CAM_AUDIO_PCM,
    CAM_N_AUDIO_CODECS
} CamAudioCodec;

typedef enum { CAM_AUDIO_NONE, CAM_AUDIO_TEST, CAM_AUDIO_ALSA } CamAudioSourceType;

typedef struct {
    CamAudioSourceType type;
    char *device; /* as ALSA names it; NULL for the others */
} CamAudioSpec;

typedef enum { CAM_VIDEO_H264, CAM_VIDEO_H265, CAM_VIDEO_MJPEG, CAM_N_VIDEO_CODECS } CamVideoCodec;

typedef struct {
    char name[CAM_NAME_MAX + 1];
    CamVideoCodec codec;
    int width, height, fps;
    int bitrate_kbps;
    int gop;
    int shown_fps; /* of slow motion: the rate that the pictures are encoded for; 0: fps */
    /* What RTSP sends beside the pictures; nothing of the encoding depends on it. */
    gboolean with_audio;
    CamAudioCodec audio;
    /* Of the pictures, as GStreamer writes it. Empty: that of the first one; it then stays, because
     * it is part of the parameter sets. */
    char colorimetry[48];
    gboolean unhurried; /* pictures come rarely: one thread and little memory will do */
} CamStreamConfig;

typedef enum { CAM_SOURCE_TEST, CAM_SOURCE_V4L2, CAM_SOURCE_FILE } CamSourceType;

typedef struct {
    CamSourceType type;
    char *path; /* device node or file, NULL for the test picture */
} CamSourceSpec;

const char *cam_control_name(CamControl control);
/* The rate that the encoder is told. */
int cam_stream_config_shown_fps(const CamStreamConfig *config);
gboolean cam_stream_config_same_encoding(const CamStreamConfig *a, const CamStreamConfig *b);
CamSourceSpec cam_source_spec_copy(const CamSourceSpec *spec);
void cam_source_spec_clear(CamSourceSpec *spec);
CamAudioSpec cam_audio_spec_copy(const CamAudioSpec *spec);
void cam_audio_spec_clear(CamAudioSpec *spec);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CamAudioSpec, cam_audio_spec_clear)

/* CLOCK_MONOTONIC in ns: the one time line of all frames inside the helper. */
GstClockTime cam_now(void);

/* The wall clock, in µs or ms since the epoch, at PTS of the time line. */
gint64 cam_wall_us(GstClockTime pts);
gint64 cam_wall_ms(GstClockTime pts);

/* Gives PIPELINE the helper's time line: system clock and a base time of 0, so that running time
 * is CLOCK_MONOTONIC and buffers cross from one pipeline to another without conversion. */
void cam_pipeline_use_timeline(GstElement *pipeline);

/* Appends a nullable value to a JSON object. */
void cam_json_set_string(JsonObject *object, const char *name, const char *value);
void cam_json_set_int_or_null(JsonObject *object, const char *name, gboolean known, gint64 value);
