/* The methods of recordings. */
#include "control_private.h"
#include "encoder_choice.h"

#include <string.h>

#define BUFFER_MAX_BYTES (256 * 1024 * 1024)

typedef struct {
    GPtrArray *calls;
    JsonObject *result;
} StopReply;

static gboolean reply_stops(gpointer data)
{
    StopReply *reply = data;

    for (guint i = 0; i < reply->calls->len; i++)
        cam_rpc_call_reply(reply->calls->pdata[i], json_object_ref(reply->result));
    return G_SOURCE_REMOVE;
}

static void stop_reply_free(gpointer data)
{
    StopReply *reply = data;

    g_ptr_array_unref(reply->calls);
    json_object_unref(reply->result);
    g_free(reply);
}

static void on_recorder_ended(CamRecorder *recorder, gpointer user_data)
{
    CamService *service = user_data;
    gpointer key = GINT_TO_POINTER(cam_recorder_id(recorder));
    GPtrArray *calls = g_hash_table_lookup(service->stops, key);
    StopReply *reply;

    g_hash_table_remove(service->recorders, key);
    g_hash_table_remove(service->stops, key);
    if (!calls)
        return;
    reply = g_new(StopReply, 1);
    *reply = (StopReply){calls, json_object_new()};
    cam_recorder_result(recorder, reply->result);
    /* The event is queued already; the answers come after it. */
    g_idle_add_full(G_PRIORITY_DEFAULT, reply_stops, reply, stop_reply_free);
}

/* FALSE: CALL was answered, this machine or the camera cannot make it. */
static gboolean can_hear(CamRpcCall *call, CamAudio *audio, CamAudioCodec codec)
{
    GstCaps *caps = NULL;

    if (!audio) {
        cam_rpc_call_fail(call, CAM_RPC_UNSUPPORTED, "the camera has no sound", NULL);
        return FALSE;
    }
    caps = cam_audio_caps(audio, codec);
    if (!caps) {
        cam_rpc_call_fail(call, CAM_RPC_UNSUPPORTED, "no encoder for this audio codec", NULL);
        return FALSE;
    }
    gst_caps_unref(caps);
    return TRUE;
}

/* Likewise. */
static gboolean can_record(CamRpcCall *call, const CamRecordingSpec *spec, CamAudio *audio)
{
    if (!*cam_encoder_choice_all(spec->video)) {
        cam_rpc_call_fail(call, CAM_RPC_UNSUPPORTED, "no encoder for this video codec", NULL);
        return FALSE;
    }
    return !spec->has_audio || can_hear(call, audio, spec->audio);
}

/* What the recording's encoder is to make, from the named stream and the wish. */
static CamStreamConfig wished(const CamRecordingRequest *request, CamHub *stream)
{
    CamStreamConfig config = cam_hub_config(stream);
    int gop = config.gop;

    if (request->own) {
        config = request->encode;
        gop = 0;
    }
    config.codec = request->spec.video;
    if (request->spec.mode == CAM_RECORD_TIMELAPSE)
        config.fps = request->spec.playback_fps;
    if (request->spec.mode == CAM_RECORD_SLOW_MOTION) {
        config.shown_fps = request->spec.playback_fps;
        gop = 0;
    }
    config.gop = gop ? gop : CLAMP(2 * cam_stream_config_shown_fps(&config), 1, 600);
    *config.name = '\0';
    config.with_audio = FALSE;
    return config;
}

/* The hub with a reference, NULL for a timelapse, which has none. */
static CamHub *choose_hub(CamCamera *camera, const CamRecordingRequest *request, CamHub *stream,
                          const CamStreamConfig *config)
{
    if (request->spec.mode == CAM_RECORD_TIMELAPSE)
        return NULL;
    if (!request->own && request->spec.video == CAM_VIDEO_H264 &&
        request->spec.mode == CAM_RECORD_VIDEO)
        return cam_hub_ref(stream);
    return cam_camera_private_hub(camera, config, FALSE);
}

static JsonObject *started(CamRecorder *recorder)
{
    CamStreamConfig config = cam_recorder_config(recorder);
    JsonObject *result = json_object_new();

    json_object_set_int_member(result, "width", config.width);
    json_object_set_int_member(result, "height", config.height);
    json_object_set_int_member(result, "fps", cam_recorder_fps(recorder));
    json_object_set_int_member(result, "pre_roll_ms", cam_recorder_pre_roll_ms(recorder));
    return result;
}

static void begin_recording(CamService *service, CamRpcCall *call,
                            const CamRecordingRequest *request, CamCamera *camera, CamAudio *audio)
{
    CamHub *stream = cam_camera_hub(camera, request->stream);
    CamRecorderSetup setup = {.id = request->id,
                              .camera = camera,
                              .path = request->path,
                              .spec = request->spec,
                              .audio = audio,
                              .ended = on_recorder_ended,
                              .user_data = service};
    CamRecorder *recorder;
    int error_number = 0;

    if (!stream) {
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such stream", NULL);
        return;
    }
    setup.config = wished(request, stream);
    setup.hub = choose_hub(camera, request, stream, &setup.config);
    cam_hub_unref(stream);
    recorder = cam_recorder_start(&setup, &error_number);
    if (!recorder) {
        cam_service_fail_io(call, error_number, request->path);
        return;
    }
    g_hash_table_insert(service->recorders, GINT_TO_POINTER(request->id), recorder);
    cam_rpc_call_reply(call, started(recorder));
}

void cam_method_recorder_start(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamParamFault fault = {0};
    CamRecordingRequest request = cam_params_recording(params, &fault);
    CamCamera *camera;
    CamAudio *audio;

    if (cam_service_refuse(call, &fault))
        return;
    if (g_hash_table_contains(service->recorders, GINT_TO_POINTER(request.id)))
        cam_rpc_call_fail(call, CAM_RPC_EXISTS, "the recorder exists", NULL);
    else if (g_hash_table_size(service->recorders) >= CAM_MAX_RECORDERS)
        cam_rpc_call_fail(call, CAM_RPC_BUSY, "too many recordings", NULL);
    else if ((camera = cam_service_camera(service, call, request.camera))) {
        audio = cam_camera_audio(camera);
        if (can_record(call, &request.spec, audio))
            begin_recording(service, call, &request, camera, audio);
        g_clear_pointer(&audio, cam_audio_unref);
    }
}

/* NULL: CALL was answered. */
static CamRecorder *only_recorder(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    gpointer key = GINT_TO_POINTER((int)cam_params_int(&in, "id", 0, CAM_MAX_ID));
    CamRecorder *recorder;

    if (cam_service_refuse(call, &fault))
        return NULL;
    recorder = g_hash_table_lookup(service->recorders, key);
    if (!recorder)
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such recorder", NULL);
    return recorder;
}

void cam_method_recorder_pause(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamRecorder *recorder = only_recorder(service, call, params);
    JsonObject *result;

    if (!recorder)
        return;
    cam_recorder_pause(recorder);
    result = json_object_new();
    json_object_set_int_member(result, "duration_ms", cam_recorder_duration_ms(recorder));
    cam_rpc_call_reply(call, result);
}

void cam_method_recorder_resume(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamRecorder *recorder = only_recorder(service, call, params);

    if (!recorder)
        return;
    cam_recorder_resume(recorder);
    cam_rpc_call_reply(call, json_object_new());
}

void cam_method_recorder_stop(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamRecorder *recorder = only_recorder(service, call, params);
    GPtrArray *calls;
    gpointer key;

    if (!recorder)
        return;
    key = GINT_TO_POINTER(cam_recorder_id(recorder));
    calls = g_hash_table_lookup(service->stops, key);
    if (!calls) {
        calls = g_ptr_array_new();
        g_hash_table_insert(service->stops, key, calls);
    }
    g_ptr_array_add(calls, call);
    cam_recorder_end(recorder, CAM_END_STOPPED);
}

/* NULL: the recording's encoding stays what its stream is. */
static CamHub *replacement(CamRecorder *recorder, CamCamera *camera, const CamStreamConfig *streams,
                           guint n_streams)
{
    CamStreamConfig mine = cam_recorder_config(recorder);
    CamHub *hub = cam_recorder_hub(recorder);
    CamStreamConfig now;

    if (!hub)
        return NULL;
    now = cam_hub_config(hub);
    if (!*now.name)
        return NULL;
    for (guint i = 0; i < n_streams; i++) {
        if (g_str_equal(streams[i].name, now.name) &&
            cam_stream_config_same_encoding(&streams[i], &mine))
            return NULL;
    }
    memcpy(mine.colorimetry, now.colorimetry, sizeof(mine.colorimetry));
    return cam_camera_private_hub(camera, &mine, TRUE);
}

void cam_service_detach_recorders(CamService *service, CamCamera *camera,
                                  const CamStreamConfig *streams, guint n_streams)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, service->recorders);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        CamHub *hub;

        if (cam_recorder_camera(value) != camera)
            continue;
        hub = replacement(value, camera, streams, n_streams);
        if (hub)
            cam_recorder_move(value, hub);
    }
}

void cam_service_end_recorders(CamService *service, CamCamera *camera, CamRecorderEnd reason)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, service->recorders);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!camera || cam_recorder_camera(value) == camera)
            cam_recorder_end(value, reason);
    }
}

void cam_method_camera_set_buffer(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", "stream", "bytes", "audio", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID);
    const char *stream = cam_params_string(&in, "stream", CAM_NAME_MAX);
    gsize bytes = (gsize)cam_params_int(&in, "bytes", 0, BUFFER_MAX_BYTES);
    gboolean named = cam_params_given(&in, "audio"), with_sound;
    CamAudioCodec codec = CAM_AUDIO_AAC;
    CamCamera *camera;
    g_autoptr(CamAudio) audio = NULL;
    CamHub *hub;

    with_sound = cam_params_recorded_audio(&in, "audio", TRUE, &codec);
    if (cam_service_refuse(call, &fault) || !(camera = cam_service_camera(service, call, id)))
        return;
    audio = cam_camera_audio(camera);
    if (bytes > 0 && named && with_sound && !can_hear(call, audio, codec))
        return;
    hub = cam_camera_hub(camera, stream);
    if (!hub) {
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such stream", NULL);
        return;
    }
    cam_camera_keep(camera, hub, bytes, with_sound ? &codec : NULL);
    cam_hub_unref(hub);
    cam_rpc_call_reply(call, json_object_new());
}
