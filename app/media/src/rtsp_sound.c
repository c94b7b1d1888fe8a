#include "rtsp_sound.h"
#include "audio_codec.h"

#include <gst/app/gstappsrc.h>

#define SOURCE_NAME "sound"
#define CODEC_KEY "cam-sound-codec"
/* Two seconds of the longest units. */
#define MAX_UNITS 100

struct _CamRtspSound {
    CamAudio *audio;
    CamAudioCodec codec;
    GstAppSrc *source;
    guint listener;     /* atomic; 0: none */
    gint begun;         /* atomic; afterwards BEGIN stays */
    GstClockTime begin; /* where the first real unit may start */
    gint playing;       /* atomic */
    gint64 stuck_since; /* written under the sound's lock, read anywhere */
};

static GstElement *payloader(CamAudioCodec codec)
{
    static const char *const names[] = {"rtpmp4gpay", "rtpopuspay", "rtppcmupay"};
    GstElement *pay = gst_element_factory_make(names[codec], "pay1");

    /* 0 is PCMU's by definition. RTP times follow the units' own, which gaps do not shift. */
    g_object_set(pay, "pt", codec == CAM_AUDIO_PCMU ? 0u : 97u, "perfect-rtptime", FALSE, NULL);
    return pay;
}

gboolean cam_rtsp_sound_build(GstBin *bin, CamAudioCodec codec)
{
    GstCaps *caps = cam_audio_codec_caps(codec);
    GstElement *source, *pay;

    if (!caps)
        return FALSE;
    source = gst_element_factory_make("appsrc", SOURCE_NAME);
    pay = payloader(codec);
    g_object_set(source, "format", GST_FORMAT_TIME, "is-live", TRUE, "max-bytes", (guint64)0,
                 "caps", caps, NULL);
    gst_caps_unref(caps);
    gst_bin_add_many(bin, source, pay, NULL);
    gst_element_link(source, pay);
    g_object_set_data(G_OBJECT(source), CODEC_KEY, GINT_TO_POINTER(codec));
    return TRUE;
}

static gboolean is_full(CamRtspSound *sound)
{
    guint limit = g_atomic_int_get(&sound->playing) ? MAX_UNITS : MAX_UNITS / 4;

    return gst_app_src_get_current_level_buffers(sound->source) >= limit;
}

static gboolean deliver(GstBuffer *unit, gpointer user_data)
{
    CamRtspSound *sound = user_data;
    gboolean full = is_full(sound);

    if (!full)
        sound->stuck_since = 0;
    else if (!sound->stuck_since)
        sound->stuck_since = g_get_monotonic_time();
    if (full || !g_atomic_int_get(&sound->begun) || GST_BUFFER_PTS(unit) < sound->begin) {
        gst_buffer_unref(unit);
        return FALSE;
    }
    gst_app_src_push_buffer(sound->source, unit);
    return TRUE;
}

static void listen(CamRtspSound *sound)
{
    if (!g_atomic_int_get((gint *)&sound->listener))
        sound->listener =
            cam_audio_attach(sound->audio, sound->codec, &(CamAudioConsumer){deliver, sound});
}

CamRtspSound *cam_rtsp_sound_new(CamAudio *audio, GstBin *bin)
{
    GstElement *source = gst_bin_get_by_name(bin, SOURCE_NAME);
    CamRtspSound *sound;

    if (!source)
        return NULL;
    sound = g_new0(CamRtspSound, 1);
    sound->audio = cam_audio_ref(audio);
    sound->source = GST_APP_SRC(source);
    sound->codec = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(source), CODEC_KEY));
    listen(sound);
    return sound;
}

void cam_rtsp_sound_end(CamRtspSound *sound)
{
    cam_audio_detach(sound->audio, (guint)g_atomic_int_exchange((gint *)&sound->listener, 0));
    sound->stuck_since = 0;
}

void cam_rtsp_sound_free(CamRtspSound *sound)
{
    cam_rtsp_sound_end(sound);
    gst_object_unref(sound->source);
    cam_audio_unref(sound->audio);
    g_free(sound);
}

/* The RTSP server answers nothing before each stream has something to send, and sound may be long
 * in coming: a unit of silence goes first. It also makes both streams begin at the same time, for
 * clients that take them as simultaneous until RTCP tells better. */
void cam_rtsp_sound_begin(CamRtspSound *sound, GstClockTime pts)
{
    GstBuffer *silence;

    if (g_atomic_int_get(&sound->begun))
        return;
    silence = cam_audio_codec_silence(sound->codec);
    sound->begin = pts + GST_BUFFER_DURATION(silence);
    GST_BUFFER_PTS(silence) = pts;
    gst_app_src_push_buffer(sound->source, silence);
    g_atomic_int_set(&sound->begun, TRUE);
}

void cam_rtsp_sound_set_playing(CamRtspSound *sound, gboolean playing)
{
    g_atomic_int_set(&sound->playing, playing);
    if (playing)
        listen(sound);
    else
        cam_rtsp_sound_end(sound);
}

gint64 cam_rtsp_sound_stuck_since(CamRtspSound *sound)
{
    return sound->stuck_since;
}
