/* Sound cards with faults: slow to open, slow to begin, there only later, gone for a while, hanging
 * when they are closed. */
#include "audio.h"
#include "audio_codec.h"
#include "ending.h"
#include "wait.h"

#include <dlfcn.h>
#include <errno.h>

#define SLOW_US (4 * G_USEC_PER_SEC)

/* What the card does; all atomic. */
static struct {
    gint slow_open, slow_begin; /* each time that it is opened */
    gint failures;              /* so often it cannot be opened */
    gint gone;                  /* while it is being read */
    gint opened;                /* how often it was */
    GMutex hanging;             /* who holds it keeps it from being closed */
} card;
static gint unread; /* atomic; nothing was read since it was opened */

static void *alsa(const char *name)
{
    void *library = dlopen("libasound.so.2", RTLD_LAZY);
    void *symbol = dlsym(library, name);

    g_assert_nonnull(symbol);
    return symbol;
}

/* These take the place of ALSA's for the GStreamer plugin. */
int snd_pcm_open(void **pcm, const char *name, int stream, int mode)
{
    int (*real)(void **, const char *, int, int) = alsa("snd_pcm_open");

    g_atomic_int_inc(&card.opened);
    if (g_atomic_int_get(&card.slow_open))
        g_usleep(SLOW_US);
    if (g_atomic_int_get(&card.failures) > 0) {
        g_atomic_int_add(&card.failures, -1);
        return -ENODEV;
    }
    g_atomic_int_set(&unread, TRUE);
    return real(pcm, name, stream, mode);
}

long snd_pcm_readi(void *pcm, void *buffer, unsigned long frames)
{
    long (*real)(void *, void *, unsigned long) = alsa("snd_pcm_readi");

    if (g_atomic_int_get(&card.gone))
        return -ENODEV;
    if (g_atomic_int_compare_and_exchange(&unread, TRUE, FALSE) &&
        g_atomic_int_get(&card.slow_begin))
        g_usleep(SLOW_US);
    return real(pcm, buffer, frames);
}

int snd_pcm_close(void *pcm)
{
    int (*real)(void *) = alsa("snd_pcm_close");

    g_mutex_lock(&card.hanging);
    g_mutex_unlock(&card.hanging);
    return real(pcm);
}

/* The listener's: blocks heard; atomic. */
static gint heard;

static gboolean hear(GstBuffer *unit, gpointer user_data)
{
    g_atomic_int_inc(&heard);
    gst_buffer_unref(unit);
    return TRUE;
}

static gboolean is_heard(gpointer unused)
{
    return g_atomic_int_get(&heard) > 20;
}

static gboolean is_in(CamAudio *audio, const char *state)
{
    JsonObject *stats = cam_audio_stats(audio);
    gboolean is = g_str_equal(json_object_get_string_member(stats, "state"), state);

    json_object_unref(stats);
    return is;
}

static gboolean is_lost(gpointer audio)
{
    return is_in(audio, "no_signal");
}

static gboolean is_idle(gpointer audio)
{
    return is_in(audio, "idle") && !cam_endings_pending();
}

static gboolean is_unheard(gpointer audio)
{
    return is_in(audio, "idle") && cam_endings_pending();
}

static CamAudio *listen(guint *id)
{
    CamAudioSpec spec = {.type = CAM_AUDIO_ALSA, .device = (char *)"null"};
    CamAudio *audio = cam_audio_new(&spec, 0);

    g_atomic_int_set(&heard, 0);
    g_atomic_int_set(&card.opened, 0);
    *id = cam_audio_attach(audio, CAM_AUDIO_PCM, &(CamAudioConsumer){hear, NULL});
    return audio;
}

static void end(CamAudio *audio, guint id)
{
    cam_audio_detach(audio, id);
    cam_audio_close(audio);
    g_assert_true(wait_for(is_idle, audio));
    cam_audio_unref(audio);
}

/* Nobody waits for it, and it is not given up as soon as it is open. */
static void test_slow_to_open(void)
{
    gint64 began = g_get_monotonic_time();
    CamAudio *audio;
    guint id;

    g_atomic_int_set(&card.slow_open, TRUE);
    audio = listen(&id);
    g_assert_cmpint(g_get_monotonic_time() - began, <, SLOW_US);
    g_assert_true(wait_for(is_heard, NULL));
    g_assert_cmpint(g_atomic_int_get(&card.opened), ==, 1);
    g_atomic_int_set(&card.slow_open, FALSE);
    end(audio, id);
}

/* Given up once, it is waited for longer. */
static void test_slow_to_begin(void)
{
    CamAudio *audio;
    guint id;

    g_atomic_int_set(&card.slow_begin, TRUE);
    audio = listen(&id);
    g_assert_true(wait_for(is_lost, audio));
    g_assert_true(wait_for(is_heard, NULL));
    g_assert_cmpint(g_atomic_int_get(&card.opened), ==, 2);
    g_atomic_int_set(&card.slow_begin, FALSE);
    end(audio, id);
}

static void test_comes_and_goes(void)
{
    CamAudio *audio;
    guint id;

    g_atomic_int_set(&card.failures, 2);
    audio = listen(&id);
    g_assert_true(wait_for(is_lost, audio));
    g_assert_true(wait_for(is_heard, NULL));
    g_assert_cmpint(g_atomic_int_get(&card.opened), ==, 3);
    g_atomic_int_set(&card.gone, TRUE);
    g_assert_true(wait_for(is_lost, audio));
    g_atomic_int_set(&heard, 0);
    g_atomic_int_set(&card.gone, FALSE);
    g_assert_true(wait_for(is_heard, NULL));
    g_assert_true(is_in(audio, "streaming"));
    end(audio, id);
}

/* Nobody waits for ever for its end. */
static void test_hanging(void)
{
    CamAudio *audio;
    guint id;

    audio = listen(&id);
    g_assert_true(wait_for(is_heard, NULL));
    g_mutex_lock(&card.hanging);
    cam_audio_detach(audio, id);
    g_assert_true(wait_for(is_unheard, audio));
    g_atomic_int_set(&heard, 0);
    id = cam_audio_attach(audio, CAM_AUDIO_PCM, &(CamAudioConsumer){hear, NULL});
    g_assert_true(wait_for(is_heard, NULL));
    g_assert_cmpint(g_atomic_int_get(&card.opened), ==, 2);
    g_assert_true(cam_endings_pending());
    g_mutex_unlock(&card.hanging);
    end(audio, id);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_audio_codecs_probe();
    g_test_add_func("/alsa/comes_and_goes", test_comes_and_goes);
    g_test_add_func("/alsa/slow_to_open", test_slow_to_open);
    g_test_add_func("/alsa/slow_to_begin", test_slow_to_begin);
    g_test_add_func("/alsa/hanging", test_hanging);
    return g_test_run();
}
