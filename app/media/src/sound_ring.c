#include "sound_ring.h"

struct _CamSoundRing {
    CamAudio *audio;
    guint consumer;
    GMutex lock;
    CamRing *ring;
};

static gboolean deliver(GstBuffer *unit, gpointer user_data)
{
    CamSoundRing *self = user_data;

    g_mutex_lock(&self->lock);
    cam_ring_push(self->ring, unit);
    g_mutex_unlock(&self->lock);
    gst_buffer_unref(unit);
    return TRUE;
}

CamSoundRing *cam_sound_ring_new(CamAudio *audio, CamAudioCodec codec, gsize max_bytes)
{
    CamSoundRing *self = g_new0(CamSoundRing, 1);

    self->audio = cam_audio_ref(audio);
    self->ring = cam_ring_new(max_bytes);
    g_mutex_init(&self->lock);
    self->consumer = cam_audio_attach(audio, codec, &(CamAudioConsumer){deliver, self});
    if (!self->consumer)
        g_clear_pointer(&self, cam_sound_ring_free);
    return self;
}

void cam_sound_ring_free(CamSoundRing *self)
{
    cam_audio_detach(self->audio, self->consumer);
    cam_audio_unref(self->audio);
    cam_ring_free(self->ring);
    g_mutex_clear(&self->lock);
    g_free(self);
}

void cam_sound_ring_replay(CamSoundRing *self, GstClockTime from, CamRingFunc func,
                           gpointer user_data)
{
    g_mutex_lock(&self->lock);
    cam_ring_replay(self->ring, from, func, user_data);
    g_mutex_unlock(&self->lock);
}
