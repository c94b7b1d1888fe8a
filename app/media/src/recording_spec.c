#include "recording_spec.h"

#include <string.h>

/* What the 32 bit offsets of AVI hold, with room for the index. */
#define AVI_MAX_BYTES G_GINT64_CONSTANT(1900000000)
#define PART_MIN_BYTES (1024 * 1024)
#define PART_MIN_MS 1000
#define PRE_ROLL_MAX_MS (600 * 1000)
#define QUEUE_MAX_FRAMES 300
#define DAY_MS (24 * 3600 * 1000)

/* The index of the value in NAMES; 0 where it is absent or wrong. */
static guint one_of(CamParams *params, const char *name, const char *const *names)
{
    g_autofree char *list = NULL;
    const char *value;

    if (!cam_params_has(params, name))
        return 0;
    value = cam_params_string(params, name, 16);
    for (guint i = 0; names[i]; i++) {
        if (g_str_equal(value, names[i]))
            return i;
    }
    list = g_strjoinv(", ", (char **)names);
    cam_params_fault(params, name, "must be one of %s", list);
    return 0;
}

gboolean cam_params_recorded_audio(CamParams *params, const char *name, gboolean absent,
                                   CamAudioCodec *codec)
{
    static const char *const names[] = {"aac", "mp3", "pcm", NULL};
    static const CamAudioCodec codecs[] = {CAM_AUDIO_AAC, CAM_AUDIO_MP3, CAM_AUDIO_PCM};

    if (!cam_params_has(params, name))
        return absent;
    if (!cam_params_given(params, name))
        return FALSE;
    *codec = codecs[one_of(params, name, names)];
    return TRUE;
}

static void read_formats(CamParams *in, CamRecordingSpec *spec)
{
    static const char *const containers[] = {"mp4", "avi", NULL};
    static const char *const codecs[] = {"h264", "h265", "mjpeg", NULL};
    CamVideoCodec refused;
    CamAudioCodec silent;

    spec->container = (CamContainerType)one_of(in, "container", containers);
    spec->video = (CamVideoCodec)one_of(in, "video", codecs);
    spec->has_audio = cam_params_recorded_audio(in, "audio", FALSE, &spec->audio);
    refused = spec->container == CAM_CONTAINER_MP4 ? CAM_VIDEO_MJPEG : CAM_VIDEO_H265;
    silent = spec->container == CAM_CONTAINER_MP4 ? CAM_AUDIO_PCM : CAM_AUDIO_AAC;
    if (spec->video == refused)
        cam_params_fault(in, "video", "%s does not go into %s", codecs[spec->video],
                         containers[spec->container]);
    if (spec->has_audio && spec->audio == silent)
        cam_params_fault(in, "audio", "does not go into %s", containers[spec->container]);
}

static void read_timelapse(CamParams *in, CamRecordingSpec *spec)
{
    static const char *const names[] = {"interval_ms", "playback_fps", NULL};
    CamParams inner =
        cam_params_open(cam_params_object(in, "timelapse"), "timelapse.", names, in->fault);

    spec->mode = CAM_RECORD_TIMELAPSE;
    spec->interval_ms = cam_params_int(&inner, "interval_ms", 100, DAY_MS);
    spec->playback_fps = (int)cam_params_int(&inner, "playback_fps", 1, 240);
}

static void read_slow_motion(CamParams *in, CamRecordingSpec *spec)
{
    static const char *const names[] = {"playback_fps", NULL};
    CamParams inner =
        cam_params_open(cam_params_object(in, "slow_motion"), "slow_motion.", names, in->fault);

    if (spec->mode != CAM_RECORD_VIDEO)
        cam_params_fault(in, "slow_motion", "does not go with timelapse");
    spec->mode = CAM_RECORD_SLOW_MOTION;
    spec->playback_fps = (int)cam_params_int(&inner, "playback_fps", 1, 240);
}

static void read_mode(CamParams *in, CamRecordingSpec *spec)
{
    if (cam_params_given(in, "timelapse"))
        read_timelapse(in, spec);
    if (cam_params_given(in, "slow_motion"))
        read_slow_motion(in, spec);
    if (spec->has_audio && spec->mode != CAM_RECORD_VIDEO)
        cam_params_fault(in, "audio", "does not go with timelapse or slow motion");
}

/* 0 and absent: no limit. */
static gint64 limit(CamParams *in, const char *name, gint64 min, gint64 max)
{
    gint64 value = cam_params_int_or(in, name, 0, max, 0);

    if (value > 0 && value < min)
        cam_params_fault(in, name, "must be 0 or at least %" G_GINT64_FORMAT, min);
    return value;
}

static void read_limits(CamParams *in, CamRecordingSpec *spec)
{
    spec->duration_ms = cam_params_int_or(in, "duration_ms", 0, G_MAXINT32, 0);
    spec->part_max_bytes = limit(in, "part_max_bytes", PART_MIN_BYTES, G_MAXINT64);
    spec->part_max_ms = limit(in, "part_max_ms", PART_MIN_MS, G_MAXINT32);
    spec->queue_frames = (int)cam_params_int_or(in, "queue_frames", 0, QUEUE_MAX_FRAMES, 0);
    spec->pre_roll_ms = cam_params_int_or(in, "pre_roll_ms", 0, PRE_ROLL_MAX_MS, 0);
    if (spec->container == CAM_CONTAINER_AVI &&
        (spec->part_max_bytes == 0 || spec->part_max_bytes > AVI_MAX_BYTES))
        spec->part_max_bytes = AVI_MAX_BYTES;
}

CamRecordingRequest cam_params_recording(JsonObject *params, CamParamFault *fault)
{
    static const char *const names[] = {
        "id",          "camera",         "path",         "stream",
        "container",   "video",          "audio",        "encode",
        "duration_ms", "part_max_bytes", "part_max_ms",  "pre_roll_ms",
        "timelapse",   "slow_motion",    "queue_frames", NULL};
    CamParams in = cam_params_open(params, "", names, fault);
    CamRecordingRequest request = {.id = (int)cam_params_int(&in, "id", 0, G_MAXINT32),
                                   .camera = (int)cam_params_int(&in, "camera", 0, G_MAXINT32),
                                   .path = cam_params_path(&in, "path"),
                                   .stream = cam_params_string(&in, "stream", CAM_NAME_MAX),
                                   .own = cam_params_has(&in, "encode")};

    if (request.own)
        request.encode = cam_params_encode(&in, "encode");
    read_formats(&in, &request.spec);
    read_mode(&in, &request.spec);
    read_limits(&in, &request.spec);
    return request;
}

const char *cam_recording_mode_name(CamRecordingMode mode)
{
    static const char *const names[] = {"video", "timelapse", "slow_motion"};

    return names[mode];
}
