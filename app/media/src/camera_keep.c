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

void cam_camera_renew_sound(CamCamera *camera)
{
    g_clear_pointer(&camera->sound, cam_sound_ring_free);
    if (camera->audio && camera->sound_bytes > 0)
        camera->sound = cam_sound_ring_new(camera->audio, camera->sound_codec, camera->sound_bytes);
}

/* A ring of another codec, or of another size, begins anew. */
static void keep_sound(CamCamera *camera, CamAudioCodec codec, gsize bytes)
{
    gsize size = MIN(bytes, SOUND_MAX_BYTES);

    if (camera->sound_codec == codec && camera->sound_bytes == size)
        return;
    camera->sound_codec = codec;
    camera->sound_bytes = size;
    cam_camera_renew_sound(camera);
}

void cam_camera_check_kept(CamCamera *camera)
{
    if (!keeps_anything(camera))
        keep_sound(camera, CAM_AUDIO_AAC, 0);
}

void cam_camera_keep(CamCamera *camera, CamHub *hub, gsize bytes, const CamAudioCodec *codec)
{
    cam_hub_keep(hub, bytes);
    if (bytes > 0 && codec)
        keep_sound(camera, *codec, bytes);
    else if (bytes > 0)
        keep_sound(camera, CAM_AUDIO_AAC, 0);
    else
        cam_camera_check_kept(camera);
}

void cam_camera_replay_sound(CamCamera *camera, CamAudioCodec codec, GstClockTime from,
                             CamRingFunc func, gpointer user_data)
{
    if (camera->sound && camera->sound_codec == codec)
        cam_sound_ring_replay(camera->sound, from, func, user_data);
}
