/* The methods of stills, recordings and statistics. */
#include "control_private.h"

#include <string.h>

static void on_snapshot(const CamSnapshotResult *still, gpointer user_data)
{
    CamRpcCall *call = user_data;
    JsonObject *result;

    switch (still->status) {
    case CAM_SNAPSHOT_OK:
        break;
    case CAM_SNAPSHOT_NO_SIGNAL:
        cam_rpc_call_fail(call, CAM_RPC_NO_SIGNAL, "the camera delivers no picture", NULL);
        return;
    case CAM_SNAPSHOT_BUSY:
        cam_rpc_call_fail(call, CAM_RPC_BUSY, "too many stills", NULL);
        return;
    case CAM_SNAPSHOT_FAILED:
        cam_rpc_call_fail(call, CAM_RPC_INTERNAL, "the still could not be made", NULL);
        return;
    }
    result = json_object_new();
    json_object_set_int_member(result, "width", still->width);
    json_object_set_int_member(result, "height", still->height);
    json_object_set_int_member(result, "frame", (gint64)still->frame);
    json_object_set_int_member(result, "timestamp_ms", still->timestamp_ms);
    json_object_set_boolean_member(result, "cached", still->cached);
    cam_rpc_call_reply_binary(call, result, still->jpeg);
}

void cam_method_snapshot_take(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"camera", "quality", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "camera", 0, CAM_MAX_ID);
    int quality = (int)cam_params_int(&in, "quality", 1, 100);
    CamCamera *camera;

    if (!cam_service_refuse(call, &fault) && (camera = cam_service_camera(service, call, id)))
        cam_snapshots_take(service->snapshots, camera, quality, on_snapshot, call);
}

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

typedef struct {
    int id, camera;
    const char *path, *stream;
    gboolean own;
    CamStreamConfig encode;
    gint64 duration_ms;
} StartParams;

static StartParams read_start(JsonObject *params, CamParamFault *fault)
{
    static const char *const names[] = {"id",     "camera",      "path", "stream",
                                        "encode", "duration_ms", NULL};
    CamParams in = cam_params_open(params, "", names, fault);
    StartParams start = {.id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID),
                         .camera = (int)cam_params_int(&in, "camera", 0, CAM_MAX_ID),
                         .path = cam_params_path(&in, "path"),
                         .stream = cam_params_string(&in, "stream", CAM_NAME_MAX),
                         .own = cam_params_has(&in, "encode")};

    if (start.own)
        start.encode = cam_params_encode(&in, "encode");
    start.duration_ms = cam_params_int_or(&in, "duration_ms", 0, G_MAXINT32, 0);
    return start;
}

static void begin_recording(CamService *service, CamRpcCall *call, const StartParams *start,
                            CamCamera *camera)
{
    CamHub *hub = cam_camera_hub(camera, start->stream);
    CamRecorder *recorder;
    JsonObject *result;
    CamStreamConfig config;
    int error_number = 0;

    if (!hub) {
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such stream", NULL);
        return;
    }
    if (start->own) {
        cam_hub_unref(hub);
        hub = cam_camera_private_hub(camera, &start->encode, FALSE);
    }
    recorder = cam_recorder_start(&(CamRecorderSetup){.id = start->id,
                                                      .camera = camera,
                                                      .path = start->path,
                                                      .hub = hub,
                                                      .duration_ms = start->duration_ms,
                                                      .ended = on_recorder_ended,
                                                      .user_data = service},
                                  &error_number);
    if (!recorder) {
        cam_service_fail_io(call, error_number, start->path);
        return;
    }
    g_hash_table_insert(service->recorders, GINT_TO_POINTER(start->id), recorder);
    config = cam_recorder_config(recorder);
    result = json_object_new();
    json_object_set_int_member(result, "width", config.width);
    json_object_set_int_member(result, "height", config.height);
    json_object_set_int_member(result, "fps", config.fps);
    cam_rpc_call_reply(call, result);
}

void cam_method_recorder_start(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamParamFault fault = {0};
    StartParams start = read_start(params, &fault);
    CamCamera *camera;

    if (cam_service_refuse(call, &fault))
        return;
    if (g_hash_table_contains(service->recorders, GINT_TO_POINTER(start.id)))
        cam_rpc_call_fail(call, CAM_RPC_EXISTS, "the recorder exists", NULL);
    else if (g_hash_table_size(service->recorders) >= CAM_MAX_RECORDERS)
        cam_rpc_call_fail(call, CAM_RPC_BUSY, "too many recordings", NULL);
    else if ((camera = cam_service_camera(service, call, start.camera)))
        begin_recording(service, call, &start, camera);
}

void cam_method_recorder_stop(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    gpointer key = GINT_TO_POINTER((int)cam_params_int(&in, "id", 0, CAM_MAX_ID));
    CamRecorder *recorder;
    GPtrArray *calls;

    if (cam_service_refuse(call, &fault))
        return;
    recorder = g_hash_table_lookup(service->recorders, key);
    if (!recorder) {
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such recorder", NULL);
        return;
    }
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

void cam_method_stats_get(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {NULL};
    CamParamFault fault = {0};
    JsonArray *cameras, *recorders;
    JsonObject *result;
    GHashTableIter iter;
    gpointer value;

    cam_params_open(params, "", names, &fault);
    if (cam_service_refuse(call, &fault))
        return;
    cameras = json_array_new();
    g_hash_table_iter_init(&iter, service->cameras);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        json_array_add_object_element(cameras, cam_camera_stats(value));
    recorders = json_array_new();
    g_hash_table_iter_init(&iter, service->recorders);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        json_array_add_object_element(recorders, cam_recorder_stats(value));
    result = json_object_new();
    json_object_set_array_member(result, "cameras", cameras);
    json_object_set_array_member(result, "recorders", recorders);
    json_object_set_array_member(result, "clients", cam_rtsp_stats(service->rtsp));
    json_object_set_object_member(result, "snapshots", cam_snapshots_stats(service->snapshots));
    cam_rpc_call_reply(call, result);
}
