/* What a camera keeps of its past for pre-rolls. */
#include "camera_private.h"

#define SOUND_MAX_BYTES (16 * 1024 * 1024)

static gboolean keeps_anything(CamCamera *camera)
{
    for (guint i = 0; i < camera->hubs->len; i++) {
        if (cam_hub_keeps(camera->hubs->pdata[i]))
            return TRUE;
    }
    return FALSE;
}

/* A ring of another codec, or of another size, begins anew. */
static gboolean keep_sound(CamCamera *camera, CamAudioCodec codec, gsize bytes)
{
    gsize size = MIN(bytes, SOUND_MAX_BYTES);

    if (camera->sound && cam_sound_ring_is(camera->sound, codec, size))
        return TRUE;
    g_clear_pointer(&camera->sound, cam_sound_ring_free);
    if (camera->audio)
        camera->sound = cam_sound_ring_new(camera->audio, codec, size);
    return camera->sound != NULL;
}

gboolean cam_camera_keep(CamCamera *camera, CamHub *hub, gsize bytes, const CamAudioCodec *codec)
{
    if (bytes > 0 && codec && !keep_sound(camera, *codec, bytes))
        return FALSE;
    cam_hub_keep(hub, bytes);
    if (!keeps_anything(camera) || (bytes > 0 && !codec))
        g_clear_pointer(&camera->sound, cam_sound_ring_free);
    return TRUE;
}

void cam_camera_replay_sound(CamCamera *camera, CamAudioCodec codec, GstClockTime from,
                             CamRingFunc func, gpointer user_data)
{
    if (camera->sound && cam_sound_ring_codec(camera->sound) == codec)
        cam_sound_ring_replay(camera->sound, from, func, user_data);
}
