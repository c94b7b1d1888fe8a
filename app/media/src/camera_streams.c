/* A camera's hubs: the named streams and those of recordings with an encoding of their own. */
#include "camera_private.h"
#include "events.h"

static gboolean on_demand(gpointer data)
{
    cam_camera_update_decoder(data);
    return G_SOURCE_REMOVE;
}

/* Only the decoder depends on who watches. The hub is locked here, therefore later. */
static void demand(gpointer camera)
{
    cam_main_invoke(on_demand, cam_camera_ref(camera), (GDestroyNotify)cam_camera_unref);
}

CamHub *cam_camera_add_hub(CamCamera *camera, const CamStreamConfig *config)
{
    CamHub *hub = cam_hub_new(config, demand, camera);

    g_mutex_lock(&camera->lock);
    g_ptr_array_add(camera->hubs, hub);
    g_mutex_unlock(&camera->lock);
    return hub;
}

static CamHub *find_hub(CamCamera *camera, const char *name)
{
    for (guint i = 0; i < camera->hubs->len; i++) {
        CamStreamConfig config = cam_hub_config(camera->hubs->pdata[i]);

        if (g_str_equal(config.name, name))
            return camera->hubs->pdata[i];
    }
    return NULL;
}

CamHub *cam_camera_hub(CamCamera *camera, const char *name)
{
    CamHub *hub = find_hub(camera, name);

    return hub ? cam_hub_ref(hub) : NULL;
}

static void remove_hub(CamCamera *camera, CamHub *hub)
{
    cam_hub_close(hub);
    g_mutex_lock(&camera->lock);
    g_ptr_array_remove(camera->hubs, hub);
    g_mutex_unlock(&camera->lock);
}

static gboolean is_listed(const char *name, const CamStreamConfig *streams, guint n_streams)
{
    for (guint i = 0; i < n_streams; i++) {
        if (g_str_equal(streams[i].name, name))
            return TRUE;
    }
    return FALSE;
}

void cam_camera_set_streams(CamCamera *camera, const CamStreamConfig *streams, guint n_streams)
{
    for (guint i = camera->hubs->len; i-- > 0;) {
        CamHub *hub = camera->hubs->pdata[i];
        CamStreamConfig config = cam_hub_config(hub);

        if (*config.name && !is_listed(config.name, streams, n_streams))
            remove_hub(camera, hub);
    }
    for (guint i = 0; i < n_streams; i++) {
        CamHub *hub = find_hub(camera, streams[i].name);

        if (hub)
            cam_hub_set_config(hub, &streams[i]);
        else
            cam_camera_add_hub(camera, &streams[i]);
    }
    cam_camera_route(camera);
}

/* Bitrate and size are what the caller chose; the key frame distance is nobody's wish. */
static gboolean same_wish(const CamStreamConfig *a, const CamStreamConfig *b)
{
    return a->codec == b->codec && a->width == b->width && a->height == b->height &&
           a->fps == b->fps && a->bitrate_kbps == b->bitrate_kbps && a->shown_fps == b->shown_fps;
}

CamHub *cam_camera_private_hub(CamCamera *camera, const CamStreamConfig *wish, gboolean alone)
{
    CamStreamConfig config = *wish;
    CamHub *hub;

    for (guint i = 0; i < camera->hubs->len; i++) {
        CamStreamConfig existing;

        hub = camera->hubs->pdata[i];
        existing = cam_hub_config(hub);
        if (same_wish(&existing, wish) && !(alone && *existing.name)) {
            cam_hub_hold(hub);
            return cam_hub_ref(hub);
        }
    }
    *config.name = '\0';
    if (!config.gop)
        config.gop = CLAMP(2 * config.fps, 1, 600);
    hub = cam_hub_ref(cam_camera_add_hub(camera, &config));
    cam_hub_hold(hub);
    cam_camera_route(camera);
    return hub;
}

void cam_camera_release_hub(CamCamera *camera, CamHub *hub)
{
    CamStreamConfig config = cam_hub_config(hub);

    if (!*config.name && cam_hub_release(hub))
        remove_hub(camera, hub);
    cam_hub_unref(hub);
}
