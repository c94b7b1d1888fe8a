/* What a camera tells the server: events and statistics. */
#include "audio_codec.h"
#include "camera_private.h"
#include "events.h"

static const char *state_name(CamState state)
{
    static const char *const names[] = {"starting", "streaming", "no_signal"};

    return names[state];
}

/* With lock held. */
static void set_device(CamCamera *camera, JsonObject *object)
{
    gboolean known = camera->info_known && camera->signal;

    g_autofree char *device = camera->spec.path
                                  ? g_strdup(camera->spec.path)
                                  : g_strdup_printf("test:%dx%d@%d", camera->mode.width,
                                                    camera->mode.height, camera->mode.fps);

    json_object_set_string_member(object, "device", device);
    cam_json_set_int_or_null(object, "width", known, camera->info.width);
    cam_json_set_int_or_null(object, "height", known, camera->info.height);
    cam_json_set_int_or_null(object, "fps", known, camera->info.fps);
    cam_json_set_string(object, "format", known ? camera->info.format : NULL);
}

JsonObject *cam_camera_controls_report(CamCamera *camera, const CamControls *wanted)
{
    JsonObject *object = json_object_new();

    g_mutex_lock(&camera->lock);
    for (int i = 0; i < CAM_N_CONTROLS; i++) {
        if (!wanted || wanted->value[i] >= 0)
            json_object_set_string_member(object, cam_control_name(i),
                                          camera->info.hardware[i] ? "device" : "software");
    }
    g_mutex_unlock(&camera->lock);
    return object;
}

void cam_camera_emit_state(CamCamera *camera)
{
    JsonObject *object = json_object_new();

    json_object_set_int_member(object, "id", camera->id);
    json_object_set_string_member(object, "state", state_name(camera->state));
    cam_json_set_string(object, "reason", camera->reason);
    g_mutex_lock(&camera->lock);
    set_device(camera, object);
    g_mutex_unlock(&camera->lock);
    json_object_set_object_member(object, "controls", cam_camera_controls_report(camera, NULL));
    cam_event_emit("camera.state", object);
}

JsonObject *cam_camera_stats(CamCamera *camera)
{
    JsonObject *object = json_object_new();
    JsonArray *streams = json_array_new();

    json_object_set_int_member(object, "id", camera->id);
    json_object_set_string_member(object, "state", state_name(camera->state));
    g_mutex_lock(&camera->lock);
    set_device(camera, object);
    json_object_set_int_member(object, "frames_captured", (gint64)camera->frames_captured);
    json_object_set_int_member(object, "frames_dropped", (gint64)camera->frames_dropped);
    json_object_set_int_member(object, "reopened", (gint64)camera->reopened);
    g_mutex_unlock(&camera->lock);
    for (guint i = 0; i < camera->hubs->len; i++) {
        CamStreamConfig config = cam_hub_config(camera->hubs->pdata[i]);

        JsonObject *stream;

        if (!*config.name)
            continue;
        stream = cam_hub_stats(camera->hubs->pdata[i]);
        cam_json_set_string(stream, "audio",
                            camera->audio && config.with_audio ? cam_audio_codec_name(config.audio)
                                                               : NULL);
        json_array_add_object_element(streams, stream);
    }
    json_object_set_array_member(object, "streams", streams);
    if (camera->audio)
        json_object_set_object_member(object, "audio", cam_audio_stats(camera->audio));
    else
        json_object_set_null_member(object, "audio");
    return object;
}
