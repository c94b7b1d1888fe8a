#include "audio_tone.h"
#include "audio.h"

#include <math.h>

#define BEEP_FRAMES (CAM_AUDIO_RATE / 10)
#define BEEP_HZ 1000
#define BEEP_LEVEL 16000
#define HUM_HZ 220
#define HUM_LEVEL 800

/* Both pitches are whole numbers, so that one second follows the other without a click. */
static const gint16 *one_second(void)
{
    static gint16 *samples;
    static gsize ready;

    if (g_once_init_enter(&ready)) {
        samples = g_new(gint16, CAM_AUDIO_RATE);
        for (guint i = 0; i < CAM_AUDIO_RATE; i++) {
            gboolean beep = i < BEEP_FRAMES;
            double phase = 2 * G_PI * i * (beep ? BEEP_HZ : HUM_HZ) / CAM_AUDIO_RATE;

            samples[i] = (gint16)lround(sin(phase) * (beep ? BEEP_LEVEL : HUM_LEVEL));
        }
        g_once_init_leave(&ready, 1);
    }
    return samples;
}

void cam_audio_tone(gint16 *samples, guint frames, gint64 wall_us)
{
    const gint16 *second = one_second();
    guint at = (guint)(wall_us % G_USEC_PER_SEC * CAM_AUDIO_RATE / G_USEC_PER_SEC);

    for (guint i = 0; i < frames; i++, at++) {
        if (at >= CAM_AUDIO_RATE)
            at -= CAM_AUDIO_RATE;
        samples[2 * i] = samples[2 * i + 1] = GINT16_TO_LE(second[at]);
    }
}
