/* The way of the frames: source → camera → hubs, on the source's thread. */
#include "camera_private.h"
#include "events.h"
#include "log.h"

#define MAX_HUBS 32

typedef struct {
    CamHub *hub[MAX_HUBS];
    guint n;
} HubList;

/* With lock held. */
static void list_hubs(CamCamera *camera, HubList *list)
{
    list->n = MIN(camera->hubs->len, MAX_HUBS);
    for (guint i = 0; i < list->n; i++)
        list->hub[i] = cam_hub_ref(camera->hubs->pdata[i]);
}

static void release_hubs(HubList *list)
{
    for (guint i = 0; i < list->n; i++)
        cam_hub_unref(list->hub[i]);
}

typedef struct {
    CamCamera *camera;
    guint64 generation;
    char *reason; /* NULL: the first frame came */
} Note;

static gboolean deliver_note(gpointer data)
{
    Note *note = data;

    if (note->reason)
        cam_camera_source_lost(note->camera, note->generation, note->reason);
    else
        cam_camera_signal_arrived(note->camera, note->generation);
    return G_SOURCE_REMOVE;
}

static void note_free(gpointer data)
{
    Note *note = data;

    cam_camera_unref(note->camera);
    g_free(note->reason);
    g_free(note);
}

static void tell_main(CamFeed *feed, const char *reason)
{
    Note *note = g_new(Note, 1);

    *note = (Note){cam_camera_ref(feed->camera), feed->generation, g_strdup(reason)};
    cam_main_invoke(deliver_note, note, note_free);
}

void cam_camera_update_adjust(CamCamera *camera)
{
    CamSharedAdjust *fresh = g_atomic_rc_box_new0(CamSharedAdjust);

    cam_adjust_init(&fresh->tables, &camera->controls, camera->info.hardware);
    g_clear_pointer(&camera->adjust, g_atomic_rc_box_release);
    camera->adjust = fresh;
}

static gboolean want_passthrough(CamCamera *camera, CamHub *hub)
{
    CamStreamConfig config = cam_hub_config(hub);

    return camera->signal && camera->native && !camera->adjust->tables.active && *config.name &&
           config.width == camera->info.width && config.height == camera->info.height &&
           config.fps >= camera->info.fps;
}

void cam_camera_route(CamCamera *camera)
{
    HubList hubs;
    gboolean passthrough[MAX_HUBS];
    int fps;

    g_mutex_lock(&camera->lock);
    list_hubs(camera, &hubs);
    for (guint i = 0; i < hubs.n; i++)
        passthrough[i] = want_passthrough(camera, hubs.hub[i]);
    fps = camera->signal ? camera->info.fps : 0;
    g_mutex_unlock(&camera->lock);
    for (guint i = 0; i < hubs.n; i++) {
        cam_hub_set_source_fps(hubs.hub[i], fps);
        cam_hub_set_passthrough(hubs.hub[i], passthrough[i]);
    }
    release_hubs(&hubs);
}

static void on_started(gpointer owner, const CamSourceInfo *info)
{
    CamFeed *feed = owner;
    CamCamera *camera = feed->camera;

    g_mutex_lock(&camera->lock);
    if (feed->generation == camera->generation) {
        camera->info = *info;
        camera->info_known = TRUE;
        camera->native = g_str_equal(info->format, "H264");
        cam_camera_update_adjust(camera);
    }
    g_mutex_unlock(&camera->lock);
}

/* With lock held: puts a picture that was taken at *PTS on the camera's time line. */
static void on_timeline(CamFeed *feed, GstClockTime *pts)
{
    CamCamera *camera = feed->camera;

    *pts = cam_picture_timeline_place(&feed->timeline, *pts, cam_now(), camera->last_pts);
    camera->last_pts = *pts;
}

/* With lock held: counts a frame of the source; FALSE when it is not to be used, because the source
 * was given up. */
static gboolean accept_frame(CamFeed *feed, GstClockTime *pts, guint64 number, gboolean *first)
{
    CamCamera *camera = feed->camera;

    if (feed->generation != camera->generation) {
        camera->frames_dropped++;
        return FALSE;
    }
    camera->frames_captured = number ? number : camera->frames_captured + 1;
    *first = !camera->signal;
    camera->signal = TRUE;
    cam_stall_picture(&camera->stall, camera->info.fps, cam_now());
    on_timeline(feed, pts);
    return TRUE;
}

/* With lock held; borrows BUFFER. The old frame is handed to the caller to free without the lock.
 */
static CamFrame replace_newest(CamCamera *camera, GstBuffer *buffer, const GstVideoInfo *info,
                               GstClockTime pts, guint64 number)
{
    CamFrame old = camera->newest;

    camera->newest = (CamFrame){gst_buffer_ref(buffer), *info, pts, number};
    return old;
}

static CamSharedAdjust *get_adjust(CamCamera *camera)
{
    CamSharedAdjust *adjust;

    g_mutex_lock(&camera->lock);
    adjust = g_atomic_rc_box_acquire(camera->adjust);
    g_mutex_unlock(&camera->lock);
    return adjust;
}

static GstBuffer *adjusted(CamCamera *camera, GstBuffer *buffer, const GstVideoInfo *info)
{
    CamSharedAdjust *adjust = get_adjust(camera);

    buffer = cam_adjust_apply(&adjust->tables, buffer, info);
    g_atomic_rc_box_release(adjust);
    return buffer;
}

static void on_raw(gpointer owner, GstBuffer *buffer, GstCaps *caps, GstClockTime pts,
                   guint64 number)
{
    CamFeed *feed = owner;
    CamCamera *camera = feed->camera;
    GstVideoInfo info;
    CamFrame old = {0};
    HubList hubs = {.n = 0};
    gboolean first = FALSE;

    gst_video_info_from_caps(&info, caps);
    buffer = adjusted(camera, buffer, &info);
    g_mutex_lock(&camera->lock);
    if (accept_frame(feed, &pts, number, &first)) {
        old = replace_newest(camera, buffer, &info, pts, camera->frames_captured);
        list_hubs(camera, &hubs);
    }
    g_mutex_unlock(&camera->lock);
    cam_frame_clear(&old);
    if (first) {
        cam_camera_route(camera);
        tell_main(feed, NULL);
    }
    for (guint i = 0; i < hubs.n; i++)
        cam_hub_push_raw(hubs.hub[i], buffer, caps, pts);
    release_hubs(&hubs);
    gst_buffer_unref(buffer);
}

static void on_no_signal_raw(gpointer owner, GstBuffer *buffer, GstCaps *caps, GstClockTime pts,
                             guint64 number)
{
    CamFeed *feed = owner;
    CamCamera *camera = feed->camera;
    HubList hubs = {.n = 0};

    g_mutex_lock(&camera->lock);
    if (feed->generation == camera->no_signal_generation && !camera->signal) {
        on_timeline(feed, &pts);
        list_hubs(camera, &hubs);
    }
    g_mutex_unlock(&camera->lock);
    for (guint i = 0; i < hubs.n; i++)
        cam_hub_push_raw(hubs.hub[i], buffer, caps, pts);
    release_hubs(&hubs);
    gst_buffer_unref(buffer);
}

static void on_encoded(gpointer owner, GstBuffer *au, GstClockTime pts, gboolean key)
{
    CamFeed *feed = owner;
    CamCamera *camera = feed->camera;
    HubList hubs = {.n = 0};
    gboolean first = FALSE;

    au = gst_buffer_make_writable(au);
    if (key)
        GST_BUFFER_FLAG_UNSET(au, GST_BUFFER_FLAG_DELTA_UNIT);
    else
        GST_BUFFER_FLAG_SET(au, GST_BUFFER_FLAG_DELTA_UNIT);
    g_mutex_lock(&camera->lock);
    if (accept_frame(feed, &pts, 0, &first)) {
        GST_BUFFER_PTS(au) = pts;
        GST_BUFFER_DTS(au) = pts;
        cam_gop_cache_push(camera->gop, au);
        if (camera->decoder)
            cam_decoder_push(camera->decoder, au);
        list_hubs(camera, &hubs);
    }
    g_mutex_unlock(&camera->lock);
    if (first) {
        cam_camera_route(camera);
        tell_main(feed, NULL);
    }
    for (guint i = 0; i < hubs.n; i++)
        cam_hub_push_encoded(hubs.hub[i], au);
    release_hubs(&hubs);
    gst_buffer_unref(au);
}

void cam_camera_on_decoded(CamDecoder *decoder, GstBuffer *buffer, GstCaps *caps, GstClockTime pts,
                           gpointer user_data)
{
    CamCamera *camera = user_data;
    GstVideoInfo info;
    CamFrame old = {0};
    HubList hubs = {.n = 0};

    gst_video_info_from_caps(&info, caps);
    buffer = adjusted(camera, buffer, &info);
    g_mutex_lock(&camera->lock);
    if (camera->signal && camera->decoder == decoder) {
        old = replace_newest(camera, buffer, &info, pts, camera->frames_captured);
        list_hubs(camera, &hubs);
    }
    g_mutex_unlock(&camera->lock);
    cam_frame_clear(&old);
    for (guint i = 0; i < hubs.n; i++)
        cam_hub_push_raw(hubs.hub[i], buffer, caps, pts);
    release_hubs(&hubs);
    gst_buffer_unref(buffer);
}

static void on_failed(gpointer owner, const char *reason)
{
    tell_main(owner, reason);
}

static void on_no_signal_started(gpointer owner, const CamSourceInfo *info)
{
}

const CamSourceEvents cam_camera_source_events = {on_started, on_raw, on_encoded, on_failed};
const CamSourceEvents cam_camera_no_signal_events = {on_no_signal_started, on_no_signal_raw, NULL,
                                                     NULL};

void cam_camera_forget_frames(CamCamera *camera)
{
    CamFrame frame;

    g_mutex_lock(&camera->lock);
    frame = camera->newest;
    camera->newest = (CamFrame){0};
    cam_gop_cache_clear(camera->gop);
    g_mutex_unlock(&camera->lock);
    cam_frame_clear(&frame);
}
