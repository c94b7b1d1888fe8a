/* The methods on finished files: each runs on a thread of its own, with less weight than what is
 * live. */
#include "control_private.h"
#include "events.h"
#include "export.h"
#include "thumbnail.h"

#include <sys/resource.h>
#include <unistd.h>

#define MAX_EXPORTS 2
#define MAX_THUMBNAILS 4
#define MAX_PARTS 1000
#define MAX_POSITION_MS (1000LL * 60 * 60 * 24 * 365)
#define NICE 10
#define STOP_US (500 * 1000)

struct _CamFileWork {
    GHashTable *exports; /* id → Export */
    int thumbnails;
    gint cancel_thumbnails; /* atomic */
    gint threads;           /* atomic */
};

typedef struct {
    CamService *service; /* only touched on the main thread */
    gint *threads;
    CamRpcCall *call;
    int id;
    char *path;
    GArray *parts; /* of CamExportPart */
    gint cancel;
    CamExportResult result;
} Export;

typedef struct {
    CamService *service;
    gint *threads;
    const gint *cancel;
    CamRpcCall *call;
    char *path, *message;
    gint64 position_ms;
    int width, quality;
    gboolean made;
    CamThumbnail thumbnail;
} Thumbnail;

CamFileWork *cam_file_work_new(void)
{
    CamFileWork *self = g_new0(CamFileWork, 1);

    self->exports = g_hash_table_new(NULL, NULL);
    return self;
}

/* What is under way is told to end; a disk that hangs must not keep the process. */
void cam_file_work_free(CamFileWork *self)
{
    gint64 deadline = g_get_monotonic_time() + STOP_US;
    GHashTableIter iter;
    gpointer value;

    g_atomic_int_set(&self->cancel_thumbnails, 1);
    g_hash_table_iter_init(&iter, self->exports);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_atomic_int_set(&((Export *)value)->cancel, 1);
    while ((g_atomic_int_get(&self->threads) > 0 || self->thumbnails > 0 ||
            g_hash_table_size(self->exports) > 0) &&
           g_get_monotonic_time() < deadline) {
        if (!g_main_context_iteration(NULL, FALSE))
            g_usleep(1000);
    }
    if (g_atomic_int_get(&self->threads) > 0)
        return;
    g_hash_table_unref(self->exports);
    g_free(self);
}

static void be_nice(void)
{
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}

static void part_clear(gpointer data)
{
    g_free(((CamExportPart *)data)->path);
}

static void export_free(gpointer data)
{
    Export *self = data;

    g_array_unref(self->parts);
    g_free(self->path);
    g_free(self->result.message);
    g_free(self);
}

static gboolean answer_export(gpointer data)
{
    Export *self = data;
    const CamExportResult *result = &self->result;
    JsonObject *object;

    g_hash_table_remove(self->service->files->exports, GINT_TO_POINTER(self->id));
    switch (result->outcome) {
    case CAM_EXPORT_DONE:
        object = json_object_new();
        json_object_set_int_member(object, "duration_ms", result->duration_ms);
        json_object_set_int_member(object, "size_bytes", result->size_bytes);
        cam_rpc_call_reply(self->call, object);
        break;
    case CAM_EXPORT_CANCELLED:
        cam_rpc_call_fail(self->call, CAM_RPC_NOT_FOUND, "cancelled", NULL);
        break;
    case CAM_EXPORT_UNSUPPORTED:
        cam_rpc_call_fail(self->call, CAM_RPC_UNSUPPORTED, result->message, NULL);
        break;
    case CAM_EXPORT_IO:
        cam_service_fail_io(self->call, result->error_number, self->path);
        break;
    }
    return G_SOURCE_REMOVE;
}

static void on_progress(gdouble fraction, gpointer user_data)
{
    Export *self = user_data;
    JsonObject *object = json_object_new();

    json_object_set_int_member(object, "id", self->id);
    json_object_set_double_member(object, "fraction", fraction);
    cam_event_emit("media.progress", object);
}

static gpointer run_export(gpointer data)
{
    Export *self = data;
    gint *threads = self->threads;

    be_nice();
    self->result =
        cam_export_run(&(CamExportSetup){.parts = (CamExportPart *)(void *)self->parts->data,
                                         .n_parts = self->parts->len,
                                         .path = self->path,
                                         .progress = on_progress,
                                         .user_data = self,
                                         .cancel = &self->cancel});
    cam_main_invoke(answer_export, self, export_free);
    g_atomic_int_add(threads, -1);
    return NULL;
}

static GArray *read_parts(CamParams *in)
{
    static const char *const names[] = {"path", "start_ms", "end_ms", NULL};
    JsonArray *array = cam_params_array(in, "parts", 1, MAX_PARTS);
    GArray *parts = g_array_new(FALSE, TRUE, sizeof(CamExportPart));

    g_array_set_clear_func(parts, part_clear);
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        g_autofree char *prefix = g_strdup_printf("parts[%u].", i);
        JsonNode *node = json_array_get_element(array, i);
        CamParams inner =
            cam_params_open(JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL,
                            prefix, names, in->fault);
        CamExportPart part = {.path = g_strdup(cam_params_path(&inner, "path")), .end_ms = -1};

        part.start_ms = cam_params_int(&inner, "start_ms", 0, MAX_POSITION_MS);
        if (cam_params_given(&inner, "end_ms"))
            part.end_ms = cam_params_int(&inner, "end_ms", part.start_ms, MAX_POSITION_MS);
        g_array_append_val(parts, part);
    }
    return parts;
}

void cam_method_media_export(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", "parts", "path", NULL};
    CamFileWork *work = service->files;
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID);
    const char *path = cam_params_path(&in, "path");
    g_autoptr(GArray) parts = read_parts(&in);
    Export *self;

    if (cam_service_refuse(call, &fault))
        return;
    if (g_hash_table_contains(work->exports, GINT_TO_POINTER(id))) {
        cam_rpc_call_fail(call, CAM_RPC_EXISTS, "the export exists", NULL);
        return;
    }
    if (g_hash_table_size(work->exports) >= MAX_EXPORTS) {
        cam_rpc_call_fail(call, CAM_RPC_BUSY, "too many exports", NULL);
        return;
    }
    self = g_new0(Export, 1);
    self->service = service;
    self->threads = &work->threads;
    self->call = call;
    self->id = id;
    self->path = g_strdup(path);
    self->parts = g_steal_pointer(&parts);
    g_hash_table_insert(work->exports, GINT_TO_POINTER(id), self);
    g_atomic_int_inc(&work->threads);
    g_thread_unref(g_thread_new("export", run_export, self));
}

void cam_method_media_cancel(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"id", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    int id = (int)cam_params_int(&in, "id", 0, CAM_MAX_ID);
    Export *export;

    if (cam_service_refuse(call, &fault))
        return;
    export = g_hash_table_lookup(service->files->exports, GINT_TO_POINTER(id));
    if (!export) {
        cam_rpc_call_fail(call, CAM_RPC_NOT_FOUND, "no such export", NULL);
        return;
    }
    g_atomic_int_set(&export->cancel, 1);
    cam_rpc_call_reply(call, json_object_new());
}

static void thumbnail_free(gpointer data)
{
    Thumbnail *self = data;

    g_clear_pointer(&self->thumbnail.jpeg, g_bytes_unref);
    g_free(self->path);
    g_free(self->message);
    g_free(self);
}

static gboolean answer_thumbnail(gpointer data)
{
    Thumbnail *self = data;
    JsonObject *result;

    self->service->files->thumbnails--;
    if (!self->made) {
        cam_rpc_call_fail(self->call, CAM_RPC_UNSUPPORTED, self->message, NULL);
        return G_SOURCE_REMOVE;
    }
    result = json_object_new();
    json_object_set_int_member(result, "width", self->thumbnail.width);
    json_object_set_int_member(result, "height", self->thumbnail.height);
    json_object_set_int_member(result, "position_ms", self->thumbnail.position_ms);
    cam_rpc_call_reply_binary(self->call, result, self->thumbnail.jpeg);
    return G_SOURCE_REMOVE;
}

static gpointer run_thumbnail(gpointer data)
{
    Thumbnail *self = data;
    gint *threads = self->threads;

    be_nice();
    self->made = cam_thumbnail_make(self->path, self->position_ms, self->width, self->quality,
                                    self->cancel, &self->thumbnail, &self->message);
    cam_main_invoke(answer_thumbnail, self, thumbnail_free);
    g_atomic_int_add(threads, -1);
    return NULL;
}

void cam_method_media_thumbnail(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"path", "position_ms", "width", "quality", NULL};
    CamFileWork *work = service->files;
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    Thumbnail thumbnail = {
        .service = service,
        .threads = &work->threads,
        .cancel = &work->cancel_thumbnails,
        .call = call,
        .position_ms = cam_params_int(&in, "position_ms", 0, MAX_POSITION_MS),
        .width = (int)cam_params_int(&in, "width", 16, 4096),
        .quality = (int)cam_params_int(&in, "quality", 1, 100),
    };
    const char *path = cam_params_path(&in, "path");

    if (cam_service_refuse(call, &fault))
        return;
    if (work->thumbnails >= MAX_THUMBNAILS) {
        cam_rpc_call_fail(call, CAM_RPC_BUSY, "too many stills of recordings", NULL);
        return;
    }
    thumbnail.path = g_strdup(path);
    work->thumbnails++;
    g_atomic_int_inc(&work->threads);
    g_thread_unref(
        g_thread_new("thumbnail", run_thumbnail, g_memdup2(&thumbnail, sizeof(thumbnail))));
}
