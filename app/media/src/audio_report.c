/* What is known of a sound. */
#include "audio_private.h"

#include <math.h>

/* About 200 ms of blocks. */
#define SMOOTHING 0.1
#define FULL_SCALE 32768.0
#define MIN_DB (-96.0)

void cam_audio_measure(CamAudio *audio, GstBuffer *pcm)
{
    GstMapInfo map;
    const gint16 *samples;
    gsize n;
    guint64 sum = 0;

    if (!gst_buffer_map(pcm, &map, GST_MAP_READ))
        return;
    samples = (const gint16 *)(const void *)map.data;
    n = map.size / sizeof(gint16);
    for (gsize i = 0; i < n; i++)
        sum += (guint64)((gint32)samples[i] * samples[i]);
    gst_buffer_unmap(pcm, &map);
    if (n > 0)
        audio->power += ((double)sum / (double)n - audio->power) * SMOOTHING;
    audio->heard = TRUE;
    g_clear_pointer(&audio->reason, g_free);
}

/* With lock held. */
static const char *state(CamAudio *audio)
{
    if (!audio->source)
        return "idle";
    if (audio->heard)
        return "streaming";
    return audio->reason ? "no_signal" : "starting";
}

JsonObject *cam_audio_stats(CamAudio *audio)
{
    JsonObject *object = json_object_new();

    g_mutex_lock(&audio->lock);
    json_object_set_string_member(object, "state", state(audio));
    cam_json_set_string(object, "reason", audio->reason);
    json_object_set_string_member(object, "source",
                                  audio->spec.type == CAM_AUDIO_ALSA ? "alsa" : "test");
    cam_json_set_string(object, "device", audio->spec.device);
    json_object_set_string_member(object, "format", "S16LE");
    json_object_set_int_member(object, "rate", CAM_AUDIO_RATE);
    json_object_set_int_member(object, "channels", CAM_AUDIO_CHANNELS);
    json_object_set_int_member(object, "consumers", audio->listeners->len);
    if (audio->source && audio->heard)
        json_object_set_double_member(
            object, "level_db",
            MAX(MIN_DB, 10 * log10(audio->power / (FULL_SCALE * FULL_SCALE) + 1e-12)));
    else
        json_object_set_null_member(object, "level_db");
    g_mutex_unlock(&audio->lock);
    return object;
}
