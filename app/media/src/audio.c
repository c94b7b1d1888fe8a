#include "audio_codec.h"
#include "audio_private.h"
#include "ending.h"
#include "events.h"
#include "log.h"

/* Long enough that a client that comes back finds everything running. */
#define LINGER_MS 2000
#define RETRY_MS 1000
/* A device that takes longer to close hangs; it is left to itself, but only so many of them. */
#define CLOSE_TIMEOUT_MS 5000
#define MAX_HUNG 3

static void on_pcm(CamAudioSource *source, GstBuffer *pcm, gpointer owner);
static void on_lost(CamAudioSource *source, const char *reason, gpointer owner);
static void on_output(CamAudioEncoder *encoder, GstBuffer *unit, GstCaps *caps, gpointer user_data);
static void on_failed(CamAudioEncoder *encoder, const char *message, gpointer user_data);
static const CamAudioSourceEvents source_events = {on_pcm, on_lost};
static const CamAudioEncoderEvents encoder_events = {on_output, on_failed};

CamAudio *cam_audio_new(const CamAudioSpec *spec, int camera)
{
    CamAudio *audio = g_new0(CamAudio, 1);

    g_atomic_ref_count_init(&audio->refs);
    g_mutex_init(&audio->build_lock);
    g_mutex_init(&audio->lock);
    audio->camera = camera;
    audio->spec = cam_audio_spec_copy(spec);
    audio->listeners = g_ptr_array_new_with_free_func(g_free);
    return audio;
}

CamAudio *cam_audio_ref(CamAudio *audio)
{
    g_atomic_ref_count_inc(&audio->refs);
    return audio;
}

static void release(gpointer audio)
{
    cam_audio_unref(audio);
}

/* Whoever runs something of it has closed it or let it run out. */
void cam_audio_unref(CamAudio *audio)
{
    if (!g_atomic_ref_count_dec(&audio->refs))
        return;
    g_ptr_array_unref(audio->listeners);
    cam_audio_spec_clear(&audio->spec);
    g_free(audio->reason);
    g_mutex_clear(&audio->build_lock);
    g_mutex_clear(&audio->lock);
    g_free(audio);
}

/* With lock held. */
static gboolean is_wanted(CamAudio *audio, CamAudioCodec codec)
{
    for (guint i = 0; i < audio->listeners->len; i++) {
        CamAudioListener *listener = audio->listeners->pdata[i];

        if (listener->codec == codec)
            return !audio->closed;
    }
    return FALSE;
}

/* With lock held. */
static gboolean is_anything_wanted(CamAudio *audio)
{
    return !audio->closed && audio->listeners->len > 0;
}

/* With lock held: the device is free, or its last user hangs. */
static gboolean can_open(CamAudio *audio)
{
    return audio->closing == 0 ||
           (audio->closing <= MAX_HUNG &&
            cam_now() >= audio->closing_since + CLOSE_TIMEOUT_MS * GST_MSECOND);
}

/* With build_lock held. */
static void begin_source(CamAudio *audio)
{
    CamAudioSource *source = NULL;

    g_mutex_lock(&audio->lock);
    if (is_anything_wanted(audio) && !audio->source && can_open(audio)) {
        source = cam_audio_source_new(&audio->spec, &source_events, audio);
        audio->source = source;
        audio->heard = FALSE;
        audio->power = 0;
    }
    g_mutex_unlock(&audio->lock);
    if (source)
        cam_audio_source_start(source);
}

static gboolean retry(gpointer data);

static void later(CamAudio *audio, guint ms)
{
    g_timeout_add_full(G_PRIORITY_DEFAULT, ms, retry, cam_audio_ref(audio), release);
}

/* With build_lock held. */
static void begin_encoder(CamAudio *audio, CamAudioCodec codec)
{
    CamAudioEncoder *encoder;
    gboolean wanted;

    g_mutex_lock(&audio->lock);
    wanted = codec != CAM_AUDIO_PCM && !audio->encoders[codec] && is_wanted(audio, codec);
    g_mutex_unlock(&audio->lock);
    if (!wanted)
        return;
    encoder = cam_audio_encoder_new(codec, &encoder_events, audio);
    g_mutex_lock(&audio->lock);
    audio->encoders[codec] = encoder;
    g_mutex_unlock(&audio->lock);
    if (!encoder)
        later(audio, RETRY_MS);
}

/* Starts what is wanted and does not run. */
static void begin(CamAudio *audio)
{
    g_mutex_lock(&audio->build_lock);
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++)
        begin_encoder(audio, codec);
    begin_source(audio);
    g_mutex_unlock(&audio->build_lock);
}

static gboolean retry(gpointer data)
{
    begin(data);
    return G_SOURCE_REMOVE;
}

/* With build_lock held. */
static void end_encoder(CamAudio *audio, CamAudioCodec codec)
{
    CamAudioEncoder *encoder;

    g_mutex_lock(&audio->lock);
    encoder = g_steal_pointer(&audio->encoders[codec]);
    g_mutex_unlock(&audio->lock);
    if (encoder)
        cam_audio_encoder_free(encoder);
}

typedef struct {
    CamAudio *audio;
    CamAudioSource *source;
} Closing;

static void source_end(gpointer data)
{
    Closing *closing = data;

    cam_audio_source_free(closing->source);
}

static void source_ended(gpointer data)
{
    Closing *closing = data;
    CamAudio *audio = closing->audio;

    g_mutex_lock(&audio->lock);
    audio->closing--;
    g_mutex_unlock(&audio->lock);
    begin(audio);
}

static void closing_free(gpointer data)
{
    Closing *closing = data;

    cam_audio_unref(closing->audio);
    g_free(closing);
}

/* With build_lock held, on the main thread. A device may take its time to close. */
static void end_source(CamAudio *audio)
{
    CamAudioSource *source;
    Closing *closing;

    g_mutex_lock(&audio->lock);
    source = g_steal_pointer(&audio->source);
    if (source) {
        audio->closing++;
        audio->closing_since = cam_now();
    }
    g_clear_pointer(&audio->reason, g_free);
    g_mutex_unlock(&audio->lock);
    if (!source)
        return;
    closing = g_new(Closing, 1);
    *closing = (Closing){cam_audio_ref(audio), source};
    cam_end_apart(source_end, closing, source_ended, closing_free);
    later(audio, CLOSE_TIMEOUT_MS + 10);
}

void cam_audio_close(CamAudio *audio)
{
    g_mutex_lock(&audio->build_lock);
    g_mutex_lock(&audio->lock);
    audio->closed = TRUE;
    g_mutex_unlock(&audio->lock);
    end_source(audio);
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++)
        end_encoder(audio, codec);
    g_mutex_unlock(&audio->build_lock);
}

static gboolean linger_over(gpointer data)
{
    CamAudio *audio = data;
    GstClockTime limit = LINGER_MS * GST_MSECOND;

    g_mutex_lock(&audio->build_lock);
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++) {
        gboolean idle;

        g_mutex_lock(&audio->lock);
        idle = !is_wanted(audio, codec) && cam_now() - audio->unused_since[codec] >= limit;
        g_mutex_unlock(&audio->lock);
        if (idle)
            end_encoder(audio, codec);
    }
    g_mutex_lock(&audio->lock);
    limit += audio->idle_since;
    limit = is_anything_wanted(audio) ? GST_CLOCK_TIME_NONE : limit;
    g_mutex_unlock(&audio->lock);
    if (cam_now() >= limit)
        end_source(audio);
    g_mutex_unlock(&audio->build_lock);
    return G_SOURCE_REMOVE;
}

guint cam_audio_attach(CamAudio *audio, CamAudioCodec codec, const CamAudioConsumer *consumer)
{
    GstCaps *caps = cam_audio_codec_caps(codec);
    CamAudioListener *listener;
    guint id;

    if (!caps)
        return 0;
    gst_caps_unref(caps);
    listener = g_new(CamAudioListener, 1);
    g_mutex_lock(&audio->lock);
    id = ++audio->next_id;
    *listener = (CamAudioListener){id, codec, *consumer};
    g_ptr_array_add(audio->listeners, listener);
    g_mutex_unlock(&audio->lock);
    begin(audio);
    return id;
}

void cam_audio_detach(CamAudio *audio, guint id)
{
    gboolean found = FALSE;

    g_mutex_lock(&audio->lock);
    for (guint i = 0; i < audio->listeners->len && !found; i++) {
        CamAudioListener *listener = audio->listeners->pdata[i];

        found = listener->id == id;
        if (found) {
            audio->idle_since = audio->unused_since[listener->codec] = cam_now();
            g_ptr_array_remove_index_fast(audio->listeners, i);
        }
    }
    g_mutex_unlock(&audio->lock);
    if (found)
        g_timeout_add_full(G_PRIORITY_DEFAULT, LINGER_MS + 10, linger_over, cam_audio_ref(audio),
                           release);
}

GstCaps *cam_audio_caps(CamAudio *audio, CamAudioCodec codec)
{
    return cam_audio_codec_caps(codec);
}

GstBuffer *cam_audio_silence(CamAudio *audio, CamAudioCodec codec)
{
    return cam_audio_codec_silence(codec);
}

/* With lock held; borrows UNIT. */
static void deliver(CamAudio *audio, CamAudioCodec codec, GstBuffer *unit)
{
    for (guint i = 0; i < audio->listeners->len; i++) {
        CamAudioListener *listener = audio->listeners->pdata[i];

        /* A copy of the header only: consumers retime it, the memory is shared. */
        if (listener->codec == codec)
            listener->calls.deliver(gst_buffer_copy(unit), listener->calls.user_data);
    }
}

static void on_pcm(CamAudioSource *source, GstBuffer *pcm, gpointer owner)
{
    CamAudio *audio = owner;

    g_mutex_lock(&audio->lock);
    if (audio->source == source) {
        cam_audio_measure(audio, pcm);
        deliver(audio, CAM_AUDIO_PCM, pcm);
        for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++) {
            if (audio->encoders[codec])
                cam_audio_encoder_push(audio->encoders[codec], pcm);
        }
    }
    g_mutex_unlock(&audio->lock);
    gst_buffer_unref(pcm);
}

static void on_lost(CamAudioSource *source, const char *reason, gpointer owner)
{
    CamAudio *audio = owner;

    g_mutex_lock(&audio->lock);
    if (audio->source == source) {
        if (g_strcmp0(audio->reason, reason) != 0)
            cam_log(CAM_LOG_WARN, "sound", "camera %d: %s", audio->camera, reason);
        g_free(audio->reason);
        audio->reason = g_strdup(reason);
        audio->heard = FALSE;
    }
    g_mutex_unlock(&audio->lock);
}

static void on_output(CamAudioEncoder *encoder, GstBuffer *unit, GstCaps *caps, gpointer user_data)
{
    CamAudio *audio = user_data;

    g_mutex_lock(&audio->lock);
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++) {
        if (audio->encoders[codec] == encoder)
            deliver(audio, codec, unit);
    }
    g_mutex_unlock(&audio->lock);
    gst_buffer_unref(unit);
}

typedef struct {
    CamAudio *audio;
    CamAudioEncoder *encoder; /* to compare with only: it may be gone */
} Broken;

static gboolean replace_broken(gpointer data)
{
    Broken *broken = data;
    CamAudio *audio = broken->audio;

    g_mutex_lock(&audio->build_lock);
    for (int codec = 0; codec < CAM_N_AUDIO_CODECS; codec++) {
        if (audio->encoders[codec] == broken->encoder) {
            end_encoder(audio, codec);
            later(audio, RETRY_MS);
        }
    }
    g_mutex_unlock(&audio->build_lock);
    return G_SOURCE_REMOVE;
}

static void broken_free(gpointer data)
{
    Broken *broken = data;

    cam_audio_unref(broken->audio);
    g_free(broken);
}

static void on_failed(CamAudioEncoder *encoder, const char *message, gpointer user_data)
{
    Broken *broken = g_new(Broken, 1);

    cam_log(CAM_LOG_ERROR, "sound", "%s", message);
    *broken = (Broken){cam_audio_ref(user_data), encoder};
    cam_main_invoke(replace_broken, broken, broken_free);
}
