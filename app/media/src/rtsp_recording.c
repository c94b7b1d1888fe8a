#include "rtsp_recording.h"
#include "ask.h"
#include "log.h"

#include <string.h>

#define DATA_KEY "cam-recording"
#define MAX_PARTS 10000
#define MAX_ID_LENGTH 18

static void recording_free(gpointer data)
{
    CamRecording *self = data;

    g_free(self->wanted);
    g_clear_pointer(&self->timeline, cam_timeline_unref);
    g_free(self);
}

gboolean cam_recording_is_meant(const GstRTSPUrl *url)
{
    gsize length = strlen(CAM_RECORDING_PATH);

    return url && url->abspath && strncmp(url->abspath, CAM_RECORDING_PATH, length) == 0 &&
           (url->abspath[length] == '\0' || url->abspath[length] == '/');
}

CamRecording *cam_recording_of(GstRTSPClient *client)
{
    return g_object_get_data(G_OBJECT(client), DATA_KEY);
}

/* The number in "id=…" among the query's parts. FALSE: it is none. *ID NULL: there is no such part.
 */
static gboolean read_id(const GstRTSPUrl *url, char **id)
{
    g_auto(GStrv) parts = g_strsplit(url->query ? url->query : "", "&", 16);

    *id = NULL;
    for (char **part = parts; *part; part++) {
        const char *value = *part + strlen("id=");
        gsize digits;

        if (*id || !g_str_has_prefix(*part, "id="))
            continue;
        digits = strspn(value, "0123456789");
        /* Some clients put a slash behind the whole address. */
        if (digits == 0 || digits > MAX_ID_LENGTH || (value[digits] && value[digits] != '/'))
            return FALSE;
        *id = g_strndup(value, digits);
    }
    return TRUE;
}

static CamTimeline *read_parts(JsonArray *parts, char **message)
{
    guint n = json_array_get_length(parts);
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_autofree GstClockTime *durations = g_new0(GstClockTime, n);

    for (guint i = 0; i < n; i++) {
        JsonNode *node = json_array_get_element(parts, i);
        JsonObject *part = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        const char *path =
            part ? json_object_get_string_member_with_default(part, "path", NULL) : NULL;
        gint64 duration =
            part ? json_object_get_int_member_with_default(part, "duration_ms", 0) : 0;

        if (!path || *path != '/' || duration < 0 || duration > G_MAXINT32)
            return NULL;
        g_ptr_array_add(paths, (gpointer)path);
        durations[i] = (GstClockTime)duration * GST_MSECOND;
    }
    g_ptr_array_add(paths, NULL);
    return cam_timeline_new((const char *const *)paths->pdata, durations, message);
}

static GstRTSPStatusCode take_answer(CamRecording *self, JsonObject *answer)
{
    JsonNode *parts = json_object_get_member(answer, "parts");
    gint64 camera = json_object_get_int_member_with_default(answer, "camera", -1);
    g_autofree char *message = NULL;
    guint n = parts && JSON_NODE_HOLDS_ARRAY(parts)
                  ? json_array_get_length(json_node_get_array(parts))
                  : 0;

    if (n < 1 || n > MAX_PARTS || camera < 0 || camera > G_MAXINT32)
        return GST_RTSP_STS_SERVICE_UNAVAILABLE;
    self->camera = (int)camera;
    self->timeline = read_parts(json_node_get_array(parts), &message);
    if (self->timeline)
        return GST_RTSP_STS_OK;
    cam_log(CAM_LOG_WARN, "playback", "a recording cannot be played: %s",
            message ? message : "its answer is malformed");
    return GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE;
}

static JsonObject *ask_server(const char *id, const char *user, int *code)
{
    JsonObject *params = json_object_new();

    if (id)
        json_object_set_string_member(params, "recording", id);
    else
        json_object_set_null_member(params, "recording");
    json_object_set_string_member(params, "user", user);
    return cam_ask("playback.resolve", params, code);
}

GstRTSPStatusCode cam_recording_resolve(GstRTSPClient *client, const GstRTSPUrl *url,
                                        const char *user)
{
    CamRecording *self;
    GstRTSPStatusCode status;
    JsonObject *answer;
    char *id;
    int code;

    if (!read_id(url, &id))
        return GST_RTSP_STS_NOT_FOUND;
    answer = ask_server(id, user, &code);
    if (!answer) {
        g_free(id);
        return code == CAM_RPC_NOT_FOUND ? GST_RTSP_STS_NOT_FOUND
                                         : GST_RTSP_STS_SERVICE_UNAVAILABLE;
    }
    self = g_new0(CamRecording, 1);
    self->wanted = id;
    status = take_answer(self, answer);
    json_object_unref(answer);
    if (status == GST_RTSP_STS_OK)
        g_object_set_data_full(G_OBJECT(client), DATA_KEY, self, recording_free);
    else
        recording_free(self);
    return status;
}

gboolean cam_recording_is_same(GstRTSPClient *client, const GstRTSPUrl *url)
{
    CamRecording *self = cam_recording_of(client);
    g_autofree char *id = NULL;

    return self && read_id(url, &id) && (!id || g_strcmp0(id, self->wanted) == 0);
}
