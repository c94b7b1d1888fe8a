/* A hub's encoder: begun, watched, replaced when it breaks, and ended without anybody waiting for
 * it, because hardware may hang. */
#include "encoder_choice.h"
#include "ending.h"
#include "events.h"
#include "log.h"
#include "stream_private.h"

/* What broke is not begun anew before that. */
#define RETRY_MS 1000
/* So long is it fed and gives nothing. */
#define SILENCE (10 * GST_SECOND)
/* One that takes longer to end hangs; it is left to itself, but only so many of them. */
#define END_TIMEOUT_MS 3000
#define MAX_HUNG 3
/* The next kind of encoder is taken after so many failures, unless this long lies between them.
 * The same one again is better: what another makes does not fit the same file. */
#define MAX_FAILURES 2
#define FORGIVEN (600 * GST_SECOND)

static void on_output(CamEncoder *encoder, GstBuffer *au, gpointer user_data);
static void on_failed(CamEncoder *encoder, const char *message, gpointer user_data);
static const CamEncoderEvents encoder_events = {on_output, on_failed};

const char *cam_hub_encoder_name(CamHub *hub)
{
    const char *const *all = cam_encoder_choice_all(hub->config.codec);
    guint n = g_strv_length((char **)all);

    return n ? all[hub->encoder_index % n] : NULL;
}

static gboolean begin(gpointer hub)
{
    cam_hub_begin_encoder(hub);
    return G_SOURCE_REMOVE;
}

static void later(CamHub *hub, guint ms, GSourceFunc func)
{
    g_timeout_add_full(G_PRIORITY_DEFAULT, ms, func, cam_hub_ref(hub),
                       (GDestroyNotify)cam_hub_unref);
}

/* With lock held. */
static void next_kind(CamHub *hub)
{
    hub->encoder_index++;
    hub->failures = 0;
}

/* With lock held. HOPELESS: the same kind again would be no better. */
static void count_failure(CamHub *hub, gboolean hopeless)
{
    GstClockTime now = cam_now();

    if (now > hub->failed_at + FORGIVEN)
        hub->failures = 0;
    hub->failed_at = now;
    if (++hub->failures >= MAX_FAILURES || hopeless)
        next_kind(hub);
    later(hub, RETRY_MS + 10, begin);
}

/* With build_lock held: the one before it is gone, or hangs. */
static gboolean has_room(CamHub *hub)
{
    return hub->ending == 0 || (hub->ending <= MAX_HUNG &&
                                cam_now() >= hub->ending_since + END_TIMEOUT_MS * GST_MSECOND);
}

/* With both locks held. */
static gboolean can_begin(CamHub *hub)
{
    gboolean rested = hub->failed_at == 0 || cam_now() >= hub->failed_at + RETRY_MS * GST_MSECOND;

    return !hub->encoder && !hub->closed && !hub->passthrough && cam_hub_is_wanted_locked(hub) &&
           rested && has_room(hub);
}

/* With lock held. */
static void take_encoder(CamHub *hub, CamEncoder *encoder)
{
    hub->encoder = encoder;
    hub->encoder_gave = FALSE;
    cam_silence_ended(&hub->silence);
    /* Its first picture is a key frame anyway. */
    hub->key_wanted = FALSE;
    hub->stats.window_start = cam_now();
    hub->stats.window_bytes = 0;
    hub->stats.measured = FALSE;
}

/* With build_lock held. */
static void begin_locked(CamHub *hub)
{
    CamStreamConfig config;
    CamEncoder *encoder;
    gboolean wanted;
    const char *factory;

    g_mutex_lock(&hub->lock);
    wanted = can_begin(hub);
    if (wanted && hub->ending == 0 && cam_now() > hub->failed_at + FORGIVEN)
        hub->encoder_index = 0;
    config = hub->config;
    factory = cam_hub_encoder_name(hub);
    g_mutex_unlock(&hub->lock);
    if (!wanted || !factory)
        return;
    encoder = cam_encoder_new(factory, &config, &encoder_events, hub);
    g_mutex_lock(&hub->lock);
    if (encoder)
        take_encoder(hub, encoder);
    else
        count_failure(hub, TRUE);
    g_mutex_unlock(&hub->lock);
}

void cam_hub_begin_encoder(CamHub *hub)
{
    g_mutex_lock(&hub->build_lock);
    begin_locked(hub);
    g_mutex_unlock(&hub->build_lock);
}

typedef struct {
    CamHub *hub;
    CamEncoder *encoder;
} Ending;

static void end(gpointer data)
{
    Ending *ending = data;

    cam_encoder_free(ending->encoder);
}

static void ended(gpointer data)
{
    Ending *ending = data;
    CamHub *hub = ending->hub;

    g_mutex_lock(&hub->build_lock);
    hub->ending--;
    g_mutex_unlock(&hub->build_lock);
    cam_hub_begin_encoder(hub);
}

static void ending_free(gpointer data)
{
    Ending *ending = data;

    cam_hub_unref(ending->hub);
    g_free(ending);
}

/* With both locks held: the newest that ends does so because it broke. */
static gboolean is_broken_ending(CamHub *hub)
{
    return hub->ending > 0 && hub->failures > 0 &&
           hub->ending_since < hub->failed_at + RETRY_MS * GST_MSECOND;
}

/* What broke and hangs while it ends would hang again. */
static gboolean check_ending(gpointer data)
{
    CamHub *hub = data;

    g_mutex_lock(&hub->build_lock);
    g_mutex_lock(&hub->lock);
    if (!hub->encoder && is_broken_ending(hub) && has_room(hub))
        next_kind(hub);
    g_mutex_unlock(&hub->lock);
    g_mutex_unlock(&hub->build_lock);
    cam_hub_begin_encoder(hub);
    return G_SOURCE_REMOVE;
}

void cam_hub_end_encoder(CamHub *hub)
{
    Ending *ending;
    CamEncoder *encoder;

    g_mutex_lock(&hub->lock);
    encoder = g_steal_pointer(&hub->encoder);
    hub->stats.measured = FALSE;
    g_mutex_unlock(&hub->lock);
    if (!encoder)
        return;
    ending = g_new(Ending, 1);
    *ending = (Ending){cam_hub_ref(hub), encoder};
    hub->ending++;
    hub->ending_since = cam_now();
    cam_end_apart(end, ending, ended, ending_free);
    later(hub, END_TIMEOUT_MS + 10, check_ending);
}

typedef struct {
    CamHub *hub;
    CamEncoder *encoder; /* to compare with only: it may be gone */
    gboolean silent;
} Broken;

static gboolean replace_broken(gpointer data)
{
    Broken *broken = data;
    CamHub *hub = broken->hub;
    gboolean current;

    g_mutex_lock(&hub->build_lock);
    g_mutex_lock(&hub->lock);
    current = hub->encoder == broken->encoder;
    /* One that hangs in its driver may hang in open() next, which is called on this thread. */
    if (current)
        count_failure(hub, broken->silent || !hub->encoder_gave);
    g_mutex_unlock(&hub->lock);
    if (current)
        cam_hub_end_encoder(hub);
    g_mutex_unlock(&hub->build_lock);
    return G_SOURCE_REMOVE;
}

static void broken_free(gpointer data)
{
    Broken *broken = data;

    cam_hub_unref(broken->hub);
    g_free(broken);
}

static void give_up(CamHub *hub, CamEncoder *encoder, gboolean silent)
{
    Broken *broken = g_new(Broken, 1);

    *broken = (Broken){cam_hub_ref(hub), encoder, silent};
    cam_main_invoke(replace_broken, broken, broken_free);
}

static void on_failed(CamEncoder *encoder, const char *message, gpointer user_data)
{
    cam_log(CAM_LOG_ERROR, "encoder", "%s", message);
    give_up(user_data, encoder, FALSE);
}

void cam_hub_watch_encoder(CamHub *hub)
{
    if (!cam_silence_fed(&hub->silence, SILENCE, cam_now()))
        return;
    cam_silence_ended(&hub->silence);
    cam_log(CAM_LOG_ERROR, "encoder", "the encoder gives nothing");
    give_up(hub, hub->encoder, TRUE);
}

static void on_output(CamEncoder *encoder, GstBuffer *au, gpointer user_data)
{
    CamHub *hub = user_data;

    g_mutex_lock(&hub->lock);
    if (hub->encoder == encoder) {
        hub->encoder_gave = TRUE;
        cam_silence_ended(&hub->silence);
        cam_hub_deliver(hub, au);
    }
    g_mutex_unlock(&hub->lock);
    gst_buffer_unref(au);
}
