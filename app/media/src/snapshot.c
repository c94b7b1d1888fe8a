#include "snapshot.h"
#include "events.h"
#include "jpeg_colours.h"
#include "log.h"

#include <turbojpeg.h>

#define WORKERS 2
#define MAX_PER_SECOND 100
/* Requests that wait for a still, in all: a few of those that may be unanswered are left for
 * others.
 */
#define MAX_WAITING 56
/* A few qualities of the newest frame of each camera. */
#define CACHE_ENTRIES 16
#define DECODE_POLL_MS 20
#define DECODE_TIMEOUT_US (3 * G_USEC_PER_SEC)

typedef struct {
    CamSnapshotDone done;
    gpointer user_data;
} Waiter;

/* One still, from being asked for to leaving the cache. */
typedef struct {
    CamSnapshots *owner;
    int camera, quality;
    CamFrame frame; /* the buffer only until it is encoded */
    gint64 timestamp_ms;
    GBytes *jpeg; /* NULL while under way or failed */
    gboolean finished;
    GArray *waiters;
} Still;

/* A request that waits for the decoder. */
typedef struct {
    CamSnapshots *owner;
    CamCamera *camera;
    int quality;
    gint64 deadline;
    Waiter waiter;
    guint timer;
} Pending;

struct _CamSnapshots {
    GThreadPool *pool;
    GQueue stills; /* newest first */
    GQueue pending;
    int under_way;
    int waiting;
    gint64 second;
    int this_second;
    guint64 encoded, cached, refused;
};

static void answer(CamSnapshots *self, const Waiter *waiter, CamSnapshotStatus status)
{
    CamSnapshotResult result = {.status = status};

    self->waiting--;
    waiter->done(&result, waiter->user_data);
}

static void answer_still(const Still *still, const Waiter *waiter, gboolean cached)
{
    CamSnapshotResult result = {.status = still->jpeg ? CAM_SNAPSHOT_OK : CAM_SNAPSHOT_FAILED,
                                .jpeg = still->jpeg,
                                .width = GST_VIDEO_INFO_WIDTH(&still->frame.info),
                                .height = GST_VIDEO_INFO_HEIGHT(&still->frame.info),
                                .frame = still->frame.number,
                                .timestamp_ms = still->timestamp_ms,
                                .cached = cached};

    still->owner->waiting--;
    waiter->done(&result, waiter->user_data);
}

static void still_free(Still *still)
{
    cam_frame_clear(&still->frame);
    g_clear_pointer(&still->jpeg, g_bytes_unref);
    g_array_unref(still->waiters);
    g_free(still);
}

static GBytes *encode(CamFrame *frame, int quality)
{
    GstVideoFrame video;
    GBytes *bytes;

    if (!gst_video_frame_map(&video, &frame->info, frame->buffer, GST_MAP_READ))
        return NULL;
    bytes = cam_jpeg_encode(&video, quality);
    gst_video_frame_unmap(&video);
    return bytes;
}

static void trim_cache(CamSnapshots *self)
{
    for (GList *l = self->stills.tail; l && self->stills.length > CACHE_ENTRIES;) {
        GList *before = l->prev;
        Still *still = l->data;

        if (still->finished) {
            g_queue_delete_link(&self->stills, l);
            still_free(still);
        }
        l = before;
    }
}

static gboolean on_encoded(gpointer data)
{
    Still *still = data;
    CamSnapshots *self = still->owner;
    GArray *waiters = still->waiters;

    self->under_way--;
    still->finished = TRUE;
    cam_frame_clear(&still->frame);
    still->waiters = g_array_new(FALSE, FALSE, sizeof(Waiter));
    for (guint i = 0; i < waiters->len; i++)
        answer_still(still, &g_array_index(waiters, Waiter, i), i > 0);
    g_array_unref(waiters);
    trim_cache(self);
    return G_SOURCE_REMOVE;
}

static void worker(gpointer data, gpointer user_data)
{
    Still *still = data;

    still->jpeg = encode(&still->frame, still->quality);
    cam_main_invoke(on_encoded, still, NULL);
}

CamSnapshots *cam_snapshots_new(void)
{
    CamSnapshots *self = g_new0(CamSnapshots, 1);

    g_queue_init(&self->stills);
    g_queue_init(&self->pending);
    self->pool = g_thread_pool_new(worker, self, WORKERS, FALSE, NULL);
    return self;
}

static Still *find(CamSnapshots *self, int camera, int quality, guint64 number)
{
    for (GList *l = self->stills.head; l; l = l->next) {
        Still *still = l->data;

        if (still->camera == camera && still->quality == quality && still->frame.number == number &&
            (!still->finished || still->jpeg))
            return still;
    }
    return NULL;
}

static gboolean within_limits(CamSnapshots *self)
{
    gint64 second = g_get_monotonic_time() / G_USEC_PER_SEC;

    if (second != self->second) {
        self->second = second;
        self->this_second = 0;
    }
    return self->this_second < MAX_PER_SECOND;
}

/* Older frames of a camera are of no more use. */
static void drop_older(CamSnapshots *self, int camera, guint64 number)
{
    for (GList *l = self->stills.head; l;) {
        GList *next = l->next;
        Still *still = l->data;

        if (still->camera == camera && still->finished && still->frame.number != number) {
            g_queue_delete_link(&self->stills, l);
            still_free(still);
        }
        l = next;
    }
}

/* Takes FRAME. */
static void take_frame(CamSnapshots *self, int camera, int quality, CamFrame *frame,
                       const Waiter *waiter)
{
    Still *still = find(self, camera, quality, frame->number);

    if (still) {
        self->cached++;
        cam_frame_clear(frame);
        if (still->finished)
            answer_still(still, waiter, TRUE);
        else
            g_array_append_val(still->waiters, *waiter);
        return;
    }
    if (!within_limits(self)) {
        self->refused++;
        cam_frame_clear(frame);
        answer(self, waiter, CAM_SNAPSHOT_BUSY);
        return;
    }
    self->this_second++;
    self->encoded++;
    self->under_way++;
    drop_older(self, camera, frame->number);
    still = g_new0(Still, 1);
    *still = (Still){.owner = self,
                     .camera = camera,
                     .quality = quality,
                     .frame = *frame,
                     .timestamp_ms = cam_wall_ms(frame->pts),
                     .waiters = g_array_new(FALSE, FALSE, sizeof(Waiter))};
    g_array_append_val(still->waiters, *waiter);
    g_queue_push_head(&self->stills, still);
    g_thread_pool_push(self->pool, still, NULL);
}

static void pending_free(Pending *pending)
{
    g_clear_handle_id(&pending->timer, g_source_remove);
    cam_camera_unref(pending->camera);
    g_free(pending);
}

static gboolean on_poll(gpointer data)
{
    Pending *pending = data;
    CamSnapshots *self = pending->owner;
    CamFrame frame;
    CamFrameAnswer state = cam_camera_take_frame(pending->camera, &frame);

    if (state == CAM_FRAME_SOON && g_get_monotonic_time() < pending->deadline)
        return G_SOURCE_CONTINUE;
    if (state == CAM_FRAME_READY)
        take_frame(self, cam_camera_id(pending->camera), pending->quality, &frame,
                   &pending->waiter);
    else
        answer(self, &pending->waiter, CAM_SNAPSHOT_NO_SIGNAL);
    g_queue_remove(&self->pending, pending);
    pending->timer = 0;
    pending_free(pending);
    return G_SOURCE_REMOVE;
}

void cam_snapshots_take(CamSnapshots *self, CamCamera *camera, int quality, CamSnapshotDone done,
                        gpointer user_data)
{
    Waiter waiter = {done, user_data};
    CamFrame frame;
    Pending *pending;

    self->waiting++;
    if (self->waiting > MAX_WAITING) {
        self->refused++;
        answer(self, &waiter, CAM_SNAPSHOT_BUSY);
        return;
    }
    switch (cam_camera_take_frame(camera, &frame)) {
    case CAM_FRAME_READY:
        take_frame(self, cam_camera_id(camera), quality, &frame, &waiter);
        return;
    case CAM_FRAME_NONE:
        answer(self, &waiter, CAM_SNAPSHOT_NO_SIGNAL);
        return;
    case CAM_FRAME_SOON:
        break;
    }
    pending = g_new0(Pending, 1);
    *pending = (Pending){.owner = self,
                         .camera = cam_camera_ref(camera),
                         .quality = quality,
                         .deadline = g_get_monotonic_time() + DECODE_TIMEOUT_US,
                         .waiter = waiter};
    pending->timer = g_timeout_add(DECODE_POLL_MS, on_poll, pending);
    g_queue_push_tail(&self->pending, pending);
}

void cam_snapshots_forget_camera(CamSnapshots *self, int camera)
{
    for (GList *l = self->stills.head; l;) {
        GList *next = l->next;
        Still *still = l->data;

        /* One under way is answered, but found no more. */
        still->camera = still->camera == camera ? -1 : still->camera;
        if (still->camera == -1 && still->finished) {
            g_queue_delete_link(&self->stills, l);
            still_free(still);
        }
        l = next;
    }
}

JsonObject *cam_snapshots_stats(CamSnapshots *self)
{
    JsonObject *object = json_object_new();

    json_object_set_int_member(object, "encoded", (gint64)self->encoded);
    json_object_set_int_member(object, "cached", (gint64)self->cached);
    json_object_set_int_member(object, "refused", (gint64)self->refused);
    return object;
}

void cam_snapshots_free(CamSnapshots *self)
{
    Pending *pending;

    while ((pending = g_queue_pop_head(&self->pending))) {
        answer(self, &pending->waiter, CAM_SNAPSHOT_FAILED);
        pending_free(pending);
    }
    /* Finishes what is under way; the answers are then in the main loop's queue. */
    g_thread_pool_free(self->pool, FALSE, TRUE);
    while (self->under_way > 0)
        g_main_context_iteration(NULL, FALSE);
    g_queue_clear_full(&self->stills, (GDestroyNotify)still_free);
    g_free(self);
}
