/* Who needs pixels of a camera's own H.264 gets them from a decoder, which runs for as long as they
 * are needed and is replaced when it breaks. */
#include "camera_private.h"
#include "ending.h"

#define LINGER (3 * GST_SECOND)
/* What makes one break may break the next. */
#define RETRY (2 * GST_SECOND)
/* Those that hang are left to themselves, but only so many of them. */
#define MAX_HUNG 3

/* With lock held. */
static gboolean pixels_wanted(CamCamera *camera)
{
    if (!camera->native || !camera->signal)
        return FALSE;
    if (cam_now() < camera->pixels_until)
        return TRUE;
    for (guint i = 0; i < camera->hubs->len; i++) {
        CamHub *hub = camera->hubs->pdata[i];

        if (cam_hub_is_wanted(hub) && !cam_hub_is_passthrough(hub))
            return TRUE;
    }
    return FALSE;
}

static void feed_decoder(GstBuffer *au, gpointer decoder)
{
    cam_decoder_push(decoder, au);
}

typedef struct {
    CamCamera *camera;
    CamDecoder *decoder;
} Retired;

static void retired_end(gpointer data)
{
    Retired *retired = data;

    cam_decoder_free(retired->decoder);
}

static void retired_ended(gpointer data)
{
    Retired *retired = data;

    retired->camera->decoders_ending--;
}

static void retired_free(gpointer data)
{
    Retired *retired = data;

    cam_camera_unref(retired->camera);
    g_free(retired);
}

/* From here on it is not heard. */
static void retire(CamCamera *camera)
{
    Retired *retired = g_new(Retired, 1);
    CamFrame frame = {0};

    g_mutex_lock(&camera->lock);
    *retired = (Retired){cam_camera_ref(camera), g_steal_pointer(&camera->decoder)};
    if (camera->native) {
        frame = camera->newest;
        camera->newest = (CamFrame){0};
    }
    g_mutex_unlock(&camera->lock);
    cam_frame_clear(&frame);
    camera->decoders_ending++;
    cam_end_apart(retired_end, retired, retired_ended, retired_free);
}

static void begin(CamCamera *camera)
{
    CamDecoder *decoder;

    if (camera->decoders_ending > MAX_HUNG || cam_now() < camera->decoder_retry)
        return;
    decoder = cam_decoder_new(cam_camera_on_decoded, camera);
    if (!decoder)
        return;
    g_mutex_lock(&camera->lock);
    /* What was there since the last key frame, so that the picture comes at once. */
    cam_gop_cache_replay(camera->gop, feed_decoder, decoder);
    camera->decoder = decoder;
    g_mutex_unlock(&camera->lock);
}

void cam_camera_update_decoder(CamCamera *camera)
{
    gboolean signal, wanted, running, broken, idle;

    g_mutex_lock(&camera->lock);
    signal = camera->signal;
    wanted = pixels_wanted(camera);
    running = camera->decoder != NULL;
    broken = running && cam_decoder_is_broken(camera->decoder);
    g_mutex_unlock(&camera->lock);
    if (wanted)
        camera->decoder_idle_since = cam_now();
    if (broken)
        camera->decoder_retry = cam_now() + RETRY;
    idle = !wanted && (!signal || cam_now() - camera->decoder_idle_since > LINGER);
    if (running && (broken || idle))
        retire(camera);
    else if (!running && wanted)
        begin(camera);
}
