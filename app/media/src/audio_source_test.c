/* The test tone as a source. */
#include "audio.h"
#include "audio_source.h"
#include "audio_tone.h"

#define BLOCK_FRAMES (CAM_AUDIO_RATE / 50)
/* Further away than this the wall clock was set; nearer, it is only read imprecisely. */
#define CLOCK_TOLERANCE_US 500

typedef struct {
    CamAudioSource base;
    gint64 wall_offset_us; /* wall clock minus time line, as the tone has it */
    gboolean offset_known;
} CamAudioTestSource;

/* A thread that is interrupted between the two clocks reads their difference wrong: the quickest of
 * some readings is the right one. */
static gint64 read_offset_us(void)
{
    gint64 offset = 0;
    GstClockTime best = GST_CLOCK_TIME_NONE;

    for (int i = 0; i < 4; i++) {
        GstClockTime before = cam_now();
        gint64 wall = g_get_real_time();
        GstClockTime took = cam_now() - before;

        if (took < best) {
            best = took;
            offset = wall - (gint64)((before + took / 2) / 1000);
        }
    }
    return offset;
}

static gint64 wall_at(CamAudioTestSource *self, GstClockTime pts)
{
    gint64 offset = read_offset_us();

    if (!self->offset_known || ABS(offset - self->wall_offset_us) > CLOCK_TOLERANCE_US)
        self->wall_offset_us = offset;
    self->offset_known = TRUE;
    return (gint64)(pts / 1000) + self->wall_offset_us;
}

static void produce(CamAudioTestSource *self, GstClockTime pts)
{
    GstBuffer *pcm =
        gst_buffer_new_allocate(NULL, BLOCK_FRAMES * CAM_AUDIO_CHANNELS * sizeof(gint16), NULL);
    GstMapInfo map;

    gst_buffer_map(pcm, &map, GST_MAP_WRITE);
    cam_audio_tone((gint16 *)(void *)map.data, BLOCK_FRAMES, wall_at(self, pts));
    gst_buffer_unmap(pcm, &map);
    cam_audio_source_deliver(&self->base, pcm, pts);
}

static gpointer run(gpointer data)
{
    CamAudioTestSource *self = data;
    const GstClockTime block = (GstClockTime)BLOCK_FRAMES * GST_SECOND / CAM_AUDIO_RATE;

    for (GstClockTime pts = cam_now();; pts += block) {
        /* Like a microphone's, a block is there when its sound has been. */
        if (!cam_audio_source_sleep_until(&self->base, pts + block))
            return NULL;
        /* After a long delay (a suspended machine) the past stays past. */
        if (cam_now() > pts + block + GST_SECOND)
            pts = cam_now() - block;
        produce(self, pts);
    }
}

static const CamAudioSourceClass test_class = {.run = run};

CamAudioSource *cam_audio_source_test_new(void)
{
    CamAudioTestSource *self = g_new0(CamAudioTestSource, 1);

    self->base.klass = &test_class;
    return &self->base;
}
