#include "audio_source.h"
#include "audio.h"

CamAudioSource *cam_audio_source_new(const CamAudioSpec *spec, const CamAudioSourceEvents *events,
                                     gpointer owner)
{
    CamAudioSource *source = spec->type == CAM_AUDIO_ALSA ? cam_audio_source_alsa_new(spec->device)
                                                          : cam_audio_source_test_new();

    source->events = events;
    source->owner = owner;
    g_mutex_init(&source->lock);
    g_cond_init(&source->wake);
    return source;
}

void cam_audio_source_start(CamAudioSource *source)
{
    source->thread = g_thread_new("sound", source->klass->run, source);
}

void cam_audio_source_free(CamAudioSource *source)
{
    g_mutex_lock(&source->lock);
    source->stopping = TRUE;
    g_cond_broadcast(&source->wake);
    g_mutex_unlock(&source->lock);
    if (source->thread)
        g_thread_join(source->thread);
    if (source->klass->clear)
        source->klass->clear(source);
    g_mutex_clear(&source->lock);
    g_cond_clear(&source->wake);
    g_free(source);
}

gboolean cam_audio_source_sleep_until(CamAudioSource *source, GstClockTime when)
{
    gboolean stopping;

    g_mutex_lock(&source->lock);
    while (!source->stopping && cam_now() < when)
        g_cond_wait_until(&source->wake, &source->lock, (gint64)(when / 1000) + 1);
    stopping = source->stopping;
    g_mutex_unlock(&source->lock);
    return !stopping;
}

void cam_audio_source_deliver(CamAudioSource *source, GstBuffer *pcm, GstClockTime pts)
{
    gsize frames = gst_buffer_get_size(pcm) / (CAM_AUDIO_CHANNELS * sizeof(gint16));

    GST_BUFFER_PTS(pcm) = pts;
    GST_BUFFER_DTS(pcm) = GST_CLOCK_TIME_NONE;
    GST_BUFFER_DURATION(pcm) = gst_util_uint64_scale(frames, GST_SECOND, CAM_AUDIO_RATE);
    source->events->pcm(source, pcm, source->owner);
}
