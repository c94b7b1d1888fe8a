/* Dispatch, and the methods of the helper and its cameras. */
#include "control_private.h"
#include "encoder_choice.h"
#include "ending.h"
#include "events.h"
#include "log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PROTOCOL_VERSION 1
#define SOURCES_CLOSE_US (500 * 1000)

CamService *cam_service_new(void)
{
    CamService *service = g_new0(CamService, 1);

    service->started_at = cam_now();
    service->cameras = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)cam_camera_unref);
    service->recorders = g_hash_table_new(NULL, NULL);
    service->stops = g_hash_table_new(NULL, NULL);
    service->snapshots = cam_snapshots_new();
    service->rtsp = cam_rtsp_new();
    service->files = cam_file_work_new();
    service->selected = -1;
    return service;
}

static gboolean close_camera(gpointer key, gpointer camera, gpointer user_data)
{
    cam_camera_close(camera);
    return TRUE;
}

/* Devices close on threads of their own, which should not be cut off in the middle; but a device
 * that hangs must not keep the process. */
static void wait_for_sources(void)
{
    gint64 deadline = g_get_monotonic_time() + SOURCES_CLOSE_US;

    while (cam_endings_pending() && g_get_monotonic_time() < deadline) {
        if (!g_main_context_iteration(NULL, FALSE))
            g_usleep(1000);
    }
}

void cam_service_free(CamService *service)
{
    cam_rtsp_free(service->rtsp);
    cam_file_work_free(service->files);
    g_hash_table_foreach_remove(service->cameras, close_camera, NULL);
    wait_for_sources();
    cam_snapshots_free(service->snapshots);
    g_hash_table_unref(service->cameras);
    g_hash_table_unref(service->recorders);
    g_hash_table_unref(service->stops);
    g_free(service);
}

gboolean cam_service_refuse(CamRpcCall *call, CamParamFault *fault)
{
    g_autofree char *message = NULL;
    JsonObject *data;

    if (!fault->field)
        return FALSE;
    message = g_strdup_printf("%s: %s", fault->field, fault->message);
    data = json_object_new();
    json_object_set_string_member(data, "field", fault->field);
    cam_rpc_call_fail(call, CAM_RPC_INVALID_PARAMS, message, data);
    cam_param_fault_clear(fault);
    return TRUE;
}

static const char *errno_name(int number)
{
    const char *name = strerrorname_np(number);

    return name ? name : "EIO";
}

void cam_service_fail_io(CamRpcCall *call, int error_number, const char *what)
{
    g_autofree char *message = g_strdup_printf("%s: %s", what, g_strerror(error_number));
    JsonObject *data = json_object_new();

    json_object_set_string_member(data, "errno", errno_name(error_number));
    cam_rpc_call_fail(call, CAM_RPC_IO, message, data);
}

CamCamera *cam_service_camera(CamService *service, CamRpcCall *call, int id)
{
    CamCamera *camera = g_hash_table_lookup(service->cameras, GINT_TO_POINTER(id));

    if (!camera)
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such camera", NULL);
    return camera;
}

static void reply_empty(CamRpcCall *call)
{
    cam_rpc_call_reply(call, json_object_new());
}

static gboolean reply_now(gpointer call)
{
    reply_empty(call);
    return G_SOURCE_REMOVE;
}

/* Whoever has the answer knows the state that the request brought about: its event is queued. */
static void reply_after_events(CamRpcCall *call)
{
    cam_main_invoke(reply_now, call, NULL);
}

static void helper_info(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {NULL};
    CamParamFault fault = {0};
    JsonObject *result;
    JsonArray *encoders;
    guint major, minor, micro, nano;
    g_autofree char *version = NULL;

    cam_params_open(params, "", names, &fault);
    if (cam_service_refuse(call, &fault))
        return;
    gst_version(&major, &minor, &micro, &nano);
    version = g_strdup_printf("%u.%u.%u", major, minor, micro);
    result = json_object_new();
    encoders = json_array_new();
    for (const char *const *name = cam_encoder_choice_all(CAM_VIDEO_H264); *name; name++)
        json_array_add_string_element(encoders, *name);
    json_object_set_int_member(result, "protocol", PROTOCOL_VERSION);
    json_object_set_string_member(result, "version", CAM_VERSION);
    json_object_set_int_member(result, "pid", getpid());
    json_object_set_string_member(result, "gstreamer", version);
    json_object_set_array_member(result, "encoders", encoders);
    cam_json_set_string(result, "encoder", cam_encoder_choice());
    json_object_set_int_member(result, "uptime_ms",
                               (gint64)((cam_now() - service->started_at) / GST_MSECOND));
    cam_rpc_call_reply(call, result);
}

static void helper_ping(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {NULL};
    CamParamFault fault = {0};

    cam_params_open(params, "", names, &fault);
    if (!cam_service_refuse(call, &fault))
        reply_empty(call);
}

static void log_set_level(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"level", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    const char *level = cam_params_string(&in, "level", 16);

    if (!fault.field && !cam_log_set_level(level))
        cam_params_fault(&in, "level", "must be error, warn, info or debug");
    if (!cam_service_refuse(call, &fault))
        reply_empty(call);
}

static void mount(CamService *service, CamCamera *camera, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* FORMAT makes the path; its last component is the stream's name. */
static void mount(CamService *service, CamCamera *camera, const char *format, ...)
{
    g_autofree char *path = NULL;
    const char *name;
    CamAudio *audio;
    CamHub *hub;
    va_list args;

    va_start(args, format);
    path = g_strdup_vprintf(format, args);
    va_end(args);
    name = strrchr(path, '/') + 1;
    hub = cam_camera_hub(camera, name);
    if (hub) {
        audio = cam_camera_audio(camera);
        cam_rtsp_mount(service->rtsp, path, hub, audio, cam_camera_id(camera), name);
        g_clear_pointer(&audio, cam_audio_unref);
        cam_hub_unref(hub);
    } else {
        cam_rtsp_unmount(service->rtsp, path);
    }
}

static void mount_selected(CamService *service)
{
    CamCamera *camera = g_hash_table_lookup(service->cameras, GINT_TO_POINTER(service->selected));

    for (int i = 1; i <= 2; i++) {
        g_autofree char *path = g_strdup_printf("/stream%d", i);

        if (camera)
            mount(service, camera, "/stream%d", i);
        else
            cam_rtsp_unmount(service->rtsp, path);
    }
}

static void camera_add(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id",       "source",  "audio", "mode",
                                        "controls", "streams", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    CamCameraSetup setup = {.id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID)};
    gpointer key = GINT_TO_POINTER(setup.id);
    CamCamera *camera;

    setup.spec = cam_params_source(&in, "source");
    setup.audio = cam_params_audio(&in, "audio");
    setup.mode = cam_params_mode(&in, "mode");
    setup.controls = cam_params_controls(&in, "controls");
    setup.n_streams = cam_params_streams(&in, "streams", setup.streams);
    if (cam_service_refuse(call, &fault)) {
        cam_source_spec_clear(&setup.spec);
        cam_audio_spec_clear(&setup.audio);
        return;
    }
    if (g_hash_table_contains(service->cameras, key)) {
        cam_rpc_call_fail(call, CAM_RPC_EXISTS, "the camera exists", NULL);
    } else if (g_hash_table_size(service->cameras) >= CAM_MAX_CAMERAS) {
        cam_rpc_call_fail(call, CAM_RPC_BUSY, "too many cameras", NULL);
    } else {
        camera = cam_camera_new(&setup);
        g_hash_table_insert(service->cameras, key, camera);
        for (guint i = 0; i < setup.n_streams; i++)
            mount(service, camera, "/cam/%d/%s", setup.id, setup.streams[i].name);
        if (service->selected < 0) {
            service->selected = setup.id;
            mount_selected(service);
        }
        reply_after_events(call);
    }
    cam_source_spec_clear(&setup.spec);
    cam_audio_spec_clear(&setup.audio);
}

/* Streams that are gone take their clients and addresses with them; the others keep both. */
static void remount(CamService *service, CamCamera *camera, const char *const *before)
{
    int id = cam_camera_id(camera);

    for (; *before; before++) {
        CamHub *hub = cam_camera_hub(camera, *before);

        if (hub)
            cam_hub_unref(hub);
        else
            cam_rtsp_kick_stream(service->rtsp, id, *before);
        mount(service, camera, "/cam/%d/%s", id, *before);
    }
}

static char **stream_names(CamCamera *camera)
{
    g_autoptr(JsonObject) stats = cam_camera_stats(camera);
    JsonArray *streams = json_object_get_array_member(stats, "streams");
    guint n = json_array_get_length(streams);
    char **names = g_new0(char *, n + 1);

    for (guint i = 0; i < n; i++)
        names[i] = g_strdup(
            json_object_get_string_member(json_array_get_object_element(streams, i), "name"));
    return names;
}

static void camera_configure(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", "audio", "mode", "streams", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID);
    gboolean has_mode = cam_params_has(&in, "mode"), has_streams = cam_params_has(&in, "streams");
    gboolean has_audio = cam_params_has(&in, "audio");
    g_auto(CamAudioSpec) audio = cam_params_audio(&in, "audio");
    CamMode mode = {0};
    CamStreamConfig streams[CAM_MAX_STREAMS];
    guint n_streams = 0;
    CamCamera *camera;
    g_auto(GStrv) before = NULL;

    if (has_mode)
        mode = cam_params_mode(&in, "mode");
    if (has_streams)
        n_streams = cam_params_streams(&in, "streams", streams);
    if (cam_service_refuse(call, &fault) || !(camera = cam_service_camera(service, call, id)))
        return;
    before = stream_names(camera);
    if (has_audio)
        cam_camera_set_audio(camera, &audio);
    if (has_streams)
        cam_service_detach_recorders(service, camera, streams, n_streams);
    cam_camera_configure(camera, has_mode ? &mode : NULL, has_streams ? streams : NULL, n_streams);
    remount(service, camera, (const char *const *)before);
    for (guint i = 0; i < n_streams; i++)
        mount(service, camera, "/cam/%d/%s", id, streams[i].name);
    if (id == service->selected)
        mount_selected(service);
    reply_after_events(call);
}

static void camera_set_controls(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", "brightness", "contrast", "saturation", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID);
    CamControls controls;
    CamCamera *camera;

    for (int i = 0; i < CAM_N_CONTROLS; i++)
        controls.value[i] = (int)cam_params_int_or(&in, cam_control_name(i), 0, 100, -1);
    if (cam_service_refuse(call, &fault) || !(camera = cam_service_camera(service, call, id)))
        return;
    cam_camera_set_controls(camera, &controls);
    cam_rpc_call_reply(call, cam_camera_controls_report(camera, &controls));
}

static CamCamera *only_id(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID);

    return cam_service_refuse(call, &fault) ? NULL : cam_service_camera(service, call, id);
}

static void camera_restart(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamCamera *camera = only_id(service, call, params);

    if (!camera)
        return;
    cam_camera_restart(camera);
    reply_after_events(call);
}

static void camera_select(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamCamera *camera = only_id(service, call, params);

    if (!camera)
        return;
    service->selected = cam_camera_id(camera);
    mount_selected(service);
    reply_empty(call);
}

static void camera_remove(CamService *service, CamRpcCall *call, JsonObject *params)
{
    CamCamera *camera = only_id(service, call, params);
    g_auto(GStrv) streams = NULL;
    int id;

    if (!camera)
        return;
    id = cam_camera_id(camera);
    streams = stream_names(camera);
    for (char **name = streams; *name; name++) {
        g_autofree char *path = g_strdup_printf("/cam/%d/%s", id, *name);

        cam_rtsp_unmount(service->rtsp, path);
    }
    cam_service_end_recorders(service, camera, CAM_END_CAMERA_REMOVED);
    cam_camera_close(camera);
    cam_snapshots_forget_camera(service->snapshots, id);
    g_hash_table_remove(service->cameras, GINT_TO_POINTER(id));
    if (id == service->selected) {
        service->selected = -1;
        mount_selected(service);
    }
    cam_rtsp_kick_stream(service->rtsp, id, NULL);
    reply_empty(call);
}

static const struct {
    const char *name;
    CamMethod method;
} methods[] = {
    {"helper.info", helper_info},
    {"helper.ping", helper_ping},
    {"log.set_level", log_set_level},
    {"camera.add", camera_add},
    {"camera.configure", camera_configure},
    {"camera.set_controls", camera_set_controls},
    {"camera.restart", camera_restart},
    {"camera.remove", camera_remove},
    {"camera.select", camera_select},
    {"camera.set_buffer", cam_method_camera_set_buffer},
    {"snapshot.take", cam_method_snapshot_take},
    {"recorder.start", cam_method_recorder_start},
    {"recorder.pause", cam_method_recorder_pause},
    {"recorder.resume", cam_method_recorder_resume},
    {"recorder.stop", cam_method_recorder_stop},
    {"rtsp.start", cam_method_rtsp_start},
    {"rtsp.set_users", cam_method_rtsp_set_users},
    {"rtsp.set_lockout", cam_method_rtsp_set_lockout},
    {"rtsp.set_certificate", cam_method_rtsp_set_certificate},
    {"rtsp.kick", cam_method_rtsp_kick},
    {"media.export", cam_method_media_export},
    {"media.cancel", cam_method_media_cancel},
    {"media.thumbnail", cam_method_media_thumbnail},
    {"stats.get", cam_method_stats_get},
};

void cam_service_handle(CamRpcCall *call, const char *method, JsonObject *params,
                        gpointer user_data)
{
    CamService *service = user_data;

    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        if (g_str_equal(method, methods[i].name)) {
            if (service->shutting_down)
                cam_rpc_call_fail(call, CAM_RPC_BUSY, "shutting down", NULL);
            else
                methods[i].method(service, call, params);
            return;
        }
    }
    cam_rpc_call_fail(call, CAM_RPC_METHOD_NOT_FOUND, "no such method", NULL);
}

void cam_service_shut_down(CamService *service)
{
    if (service->shutting_down)
        return;
    service->shutting_down = TRUE;
    cam_service_end_recorders(service, NULL, CAM_END_SHUTDOWN);
}

guint cam_service_recorders(CamService *service)
{
    return g_hash_table_size(service->recorders);
}
