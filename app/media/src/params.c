#include "params.h"
#include "audio_codec.h"

#include <string.h>

#define MAX_ID G_MAXINT32

void cam_params_fault(CamParams *params, const char *name, const char *format, ...)
{
    va_list args;

    if (params->fault->field)
        return;
    params->fault->field = g_strconcat(params->prefix, name, NULL);
    va_start(args, format);
    params->fault->message = g_strdup_vprintf(format, args);
    va_end(args);
}

void cam_param_fault_clear(CamParamFault *fault)
{
    g_clear_pointer(&fault->field, g_free);
    g_clear_pointer(&fault->message, g_free);
}

CamParams cam_params_open(JsonObject *object, const char *prefix, const char *const *names,
                          CamParamFault *fault)
{
    CamParams params = {.object = object, .prefix = prefix, .fault = fault};
    JsonObjectIter iter;
    const char *name;

    if (!object)
        return params;
    json_object_iter_init(&iter, object);
    while (json_object_iter_next(&iter, &name, NULL)) {
        if (!g_strv_contains(names, name))
            cam_params_fault(&params, name, "unknown field");
    }
    return params;
}

gboolean cam_params_has(CamParams *params, const char *name)
{
    return params->object && json_object_has_member(params->object, name);
}

gboolean cam_params_given(CamParams *params, const char *name)
{
    return cam_params_has(params, name) &&
           !JSON_NODE_HOLDS_NULL(json_object_get_member(params->object, name));
}

static JsonNode *required(CamParams *params, const char *name)
{
    JsonNode *node = params->object ? json_object_get_member(params->object, name) : NULL;

    if (!node)
        cam_params_fault(params, name, "missing");
    return node;
}

gint64 cam_params_int(CamParams *params, const char *name, gint64 min, gint64 max)
{
    JsonNode *node = required(params, name);
    gint64 value;

    if (!node)
        return min;
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64) {
        cam_params_fault(params, name, "must be an integer");
        return min;
    }
    value = json_node_get_int(node);
    if (value < min || value > max) {
        cam_params_fault(params, name, "must be %" G_GINT64_FORMAT " … %" G_GINT64_FORMAT, min,
                         max);
        return min;
    }
    return value;
}

gint64 cam_params_int_or(CamParams *params, const char *name, gint64 min, gint64 max,
                         gint64 fallback)
{
    return cam_params_has(params, name) ? cam_params_int(params, name, min, max) : fallback;
}

gboolean cam_params_bool(CamParams *params, const char *name)
{
    JsonNode *node = required(params, name);

    if (!node)
        return FALSE;
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_BOOLEAN) {
        cam_params_fault(params, name, "must be true or false");
        return FALSE;
    }
    return json_node_get_boolean(node);
}

const char *cam_params_string(CamParams *params, const char *name, gsize max_bytes)
{
    JsonNode *node = required(params, name);
    const char *value;

    if (!node)
        return "";
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING) {
        cam_params_fault(params, name, "must be a string");
        return "";
    }
    value = json_node_get_string(node);
    if (!*value || strlen(value) > max_bytes) {
        cam_params_fault(params, name, "must be 1 … %" G_GSIZE_FORMAT " bytes long", max_bytes);
        return "";
    }
    return value;
}

const char *cam_params_path(CamParams *params, const char *name)
{
    const char *path = cam_params_string(params, name, 4095);

    if (*path != '/')
        cam_params_fault(params, name, "must be an absolute path");
    return path;
}

JsonObject *cam_params_object(CamParams *params, const char *name)
{
    JsonNode *node = required(params, name);

    if (!node)
        return NULL;
    if (!JSON_NODE_HOLDS_OBJECT(node)) {
        cam_params_fault(params, name, "must be an object");
        return NULL;
    }
    return json_node_get_object(node);
}

JsonArray *cam_params_array(CamParams *params, const char *name, guint min, guint max)
{
    JsonNode *node = required(params, name);
    JsonArray *array;

    if (!node)
        return NULL;
    if (!JSON_NODE_HOLDS_ARRAY(node)) {
        cam_params_fault(params, name, "must be an array");
        return NULL;
    }
    array = json_node_get_array(node);
    if (json_array_get_length(array) < min || json_array_get_length(array) > max) {
        cam_params_fault(params, name, "must have %u … %u elements", min, max);
        return NULL;
    }
    return array;
}

CamSourceSpec cam_params_source(CamParams *params, const char *name)
{
    static const char *const all[] = {"type", "device", "path", NULL};
    static const char *const only_type[] = {"type", NULL};
    static const char *const with_device[] = {"type", "device", NULL};
    static const char *const with_path[] = {"type", "path", NULL};
    g_autofree char *prefix = g_strconcat(params->prefix, name, ".", NULL);
    JsonObject *object = cam_params_object(params, name);
    CamSourceSpec spec = {.type = CAM_SOURCE_TEST};
    CamParams inner = cam_params_open(object, prefix, all, params->fault);
    const char *type, *path = NULL, *path_name = NULL;

    if (!object)
        return spec;
    type = cam_params_string(&inner, "type", 16);
    if (g_str_equal(type, "test")) {
        cam_params_open(object, prefix, only_type, params->fault);
    } else if (g_str_equal(type, "v4l2")) {
        spec.type = CAM_SOURCE_V4L2;
        path_name = "device";
        cam_params_open(object, prefix, with_device, params->fault);
    } else if (g_str_equal(type, "file")) {
        spec.type = CAM_SOURCE_FILE;
        path_name = "path";
        cam_params_open(object, prefix, with_path, params->fault);
    } else {
        cam_params_fault(&inner, "type", "must be test, v4l2 or file");
    }
    if (path_name) {
        path = cam_params_path(&inner, path_name);
        spec.path = g_strdup(path);
    }
    return spec;
}

/* What alsa-lib would read as a configuration of its own, plug-ins that run commands among them, is
 * no device's name. */
static const char *alsa_device(CamParams *params, const char *name)
{
    const char *device = cam_params_string(params, name, 128);

    for (const char *c = device; *c; c++) {
        if (!g_ascii_isalnum(*c) && !strchr(":,=._-", *c))
            cam_params_fault(params, name, "only letters, digits and : , = . _ - are allowed");
    }
    return device;
}

CamAudioSpec cam_params_audio(CamParams *params, const char *name)
{
    static const char *const all[] = {"type", "device", NULL};
    g_autofree char *prefix = g_strconcat(params->prefix, name, ".", NULL);
    CamAudioSpec spec = {.type = CAM_AUDIO_NONE};
    JsonObject *object;
    CamParams inner;
    const char *type;

    if (!cam_params_given(params, name))
        return spec;
    object = cam_params_object(params, name);
    if (!object)
        return spec;
    inner = cam_params_open(object, prefix, all, params->fault);
    type = cam_params_string(&inner, "type", 16);
    if (g_str_equal(type, "alsa")) {
        spec.type = CAM_AUDIO_ALSA;
        spec.device = g_strdup(alsa_device(&inner, "device"));
    } else if (g_str_equal(type, "test")) {
        spec.type = CAM_AUDIO_TEST;
        if (cam_params_has(&inner, "device"))
            cam_params_fault(&inner, "device", "unknown field");
    } else {
        cam_params_fault(&inner, "type", "must be test or alsa");
    }
    return spec;
}

static int even(CamParams *params, const char *name, int min, int max)
{
    int value = (int)cam_params_int(params, name, min, max);

    if (value % 2)
        cam_params_fault(params, name, "must be even");
    return value;
}

CamMode cam_params_mode(CamParams *params, const char *name)
{
    static const char *const names[] = {"width", "height", "fps", NULL};
    g_autofree char *prefix = g_strconcat(params->prefix, name, ".", NULL);
    JsonObject *object = cam_params_object(params, name);
    CamParams inner = cam_params_open(object, prefix, names, params->fault);
    CamMode mode = {0};

    if (!object)
        return mode;
    mode.width = even(&inner, "width", 16, 7680);
    mode.height = even(&inner, "height", 16, 4320);
    mode.fps = (int)cam_params_int(&inner, "fps", 1, 240);
    return mode;
}

CamControls cam_params_controls(CamParams *params, const char *name)
{
    static const char *const names[] = {"brightness", "contrast", "saturation", NULL};
    g_autofree char *prefix = g_strconcat(params->prefix, name, ".", NULL);
    JsonObject *object = cam_params_object(params, name);
    CamParams inner = cam_params_open(object, prefix, names, params->fault);
    CamControls controls = {0};

    if (!object)
        return controls;
    for (int i = 0; i < CAM_N_CONTROLS; i++)
        controls.value[i] = (int)cam_params_int(&inner, cam_control_name(i), 0, 100);
    return controls;
}

static void encoding(CamParams *params, CamStreamConfig *config)
{
    config->width = even(params, "width", 16, 7680);
    config->height = even(params, "height", 16, 4320);
    config->fps = (int)cam_params_int(params, "fps", 1, 240);
    config->bitrate_kbps = (int)cam_params_int(params, "bitrate_kbps", 64, 100000);
}

static void stream_audio(CamParams *params, CamStreamConfig *config)
{
    const char *codec;

    config->with_audio = cam_params_given(params, "audio");
    if (!config->with_audio)
        return;
    codec = cam_params_string(params, "audio", 16);
    /* What RTSP clients understand. */
    if (!cam_audio_codec_of(codec, &config->audio) ||
        (config->audio != CAM_AUDIO_AAC && config->audio != CAM_AUDIO_OPUS &&
         config->audio != CAM_AUDIO_PCMU))
        cam_params_fault(params, "audio", "must be null, aac, opus or pcmu");
}

static void stream(CamParams *params, CamStreamConfig *config)
{
    const char *name = cam_params_string(params, "name", CAM_NAME_MAX);

    for (const char *c = name; *c; c++) {
        if (!g_ascii_islower(*c) && !g_ascii_isdigit(*c) && *c != '_' && *c != '-')
            cam_params_fault(params, "name", "only a-z, 0-9, _ and - are allowed");
    }
    g_strlcpy(config->name, name, sizeof(config->name));
    encoding(params, config);
    config->gop = (int)cam_params_int(params, "gop", 1, 600);
    stream_audio(params, config);
}

guint cam_params_streams(CamParams *params, const char *name,
                         CamStreamConfig streams[CAM_MAX_STREAMS])
{
    static const char *const names[] = {"name",         "width", "height", "fps",
                                        "bitrate_kbps", "gop",   "audio",  NULL};
    JsonArray *array = cam_params_array(params, name, 1, CAM_MAX_STREAMS);
    guint n = array ? json_array_get_length(array) : 0;

    for (guint i = 0; i < n; i++) {
        g_autofree char *element = g_strdup_printf("%s[%u]", name, i);
        g_autofree char *prefix = g_strconcat(params->prefix, element, ".", NULL);
        JsonNode *node = json_array_get_element(array, i);
        CamParams inner;

        streams[i] = (CamStreamConfig){0};
        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            cam_params_fault(params, element, "must be an object");
            continue;
        }
        inner = cam_params_open(json_node_get_object(node), prefix, names, params->fault);
        stream(&inner, &streams[i]);
        for (guint j = 0; j < i; j++) {
            if (g_str_equal(streams[j].name, streams[i].name))
                cam_params_fault(&inner, "name", "must be unique");
        }
    }
    return n;
}

CamStreamConfig cam_params_encode(CamParams *params, const char *name)
{
    static const char *const names[] = {"width", "height", "fps", "bitrate_kbps", NULL};
    g_autofree char *prefix = g_strconcat(params->prefix, name, ".", NULL);
    JsonObject *object = cam_params_object(params, name);
    CamParams inner = cam_params_open(object, prefix, names, params->fault);
    CamStreamConfig config = {0};

    if (object)
        encoding(&inner, &config);
    return config;
}
