#include "rtsp_unused.h"

#define PROBE_KEY "cam-probe"

static GstPadProbeReturn drop(GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
    return GST_PAD_PROBE_DROP;
}

/* Where the media holds back what it has prepared: behind the RTP session that the payloader feeds.
 */
static GstPad *exit_of(GstRTSPStream *stream)
{
    g_autofree char *name = g_strdup_printf("send_rtp_src_%u", gst_rtsp_stream_get_index(stream));
    g_autoptr(GstPad) payloader = gst_rtsp_stream_get_srcpad(stream);
    g_autoptr(GstPad) entry = payloader ? gst_pad_get_peer(payloader) : NULL;
    g_autoptr(GstElement) sessions = entry ? gst_pad_get_parent_element(entry) : NULL;

    return sessions ? gst_element_get_static_pad(sessions, name) : NULL;
}

static void set_dropped(GstRTSPStream *stream, gboolean dropped)
{
    g_autoptr(GstPad) pad = exit_of(stream);
    gulong probe = GPOINTER_TO_SIZE(g_object_get_data(G_OBJECT(stream), PROBE_KEY));

    if (!pad || dropped == (probe != 0))
        return;
    if (dropped) {
        probe = gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
                                  drop, NULL, NULL);
    } else {
        gst_pad_remove_probe(pad, probe);
        probe = 0;
    }
    g_object_set_data(G_OBJECT(stream), PROBE_KEY, GSIZE_TO_POINTER(probe));
}

void cam_rtsp_drop_unused(GstRTSPMedia *media)
{
    for (guint i = 0; i < gst_rtsp_media_n_streams(media); i++) {
        GstRTSPStream *stream = gst_rtsp_media_get_stream(media, i);

        set_dropped(stream, !gst_rtsp_stream_is_complete(stream));
    }
}
