/* The methods of stills and statistics. */
#include "control_private.h"

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
