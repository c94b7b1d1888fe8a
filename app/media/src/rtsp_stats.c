/* What is known of each RTSP client: its connection, and what its RTP session counts. */
#include "rtsp_client_private.h"

typedef struct {
    guint64 bytes, packets;
    gboolean reported;
    int lost;
    double fraction_lost, jitter_ms;
} RtpStats;

/* REPORTS: what the client says of its reception counts too. */
static void read_source(const GstStructure *source, gboolean reports, RtpStats *stats)
{
    gboolean internal = FALSE, have_block = FALSE;
    guint64 bytes = 0, packets = 0;
    guint fraction = 0, jitter = 0;
    int lost = 0;

    gst_structure_get_boolean(source, "internal", &internal);
    if (internal) {
        gst_structure_get_uint64(source, "octets-sent", &bytes);
        gst_structure_get_uint64(source, "packets-sent", &packets);
        stats->bytes += bytes;
        stats->packets += packets;
        return;
    }
    gst_structure_get_boolean(source, "have-rb", &have_block);
    if (!have_block || !reports)
        return;
    gst_structure_get_uint(source, "rb-fractionlost", &fraction);
    gst_structure_get_int(source, "rb-packetslost", &lost);
    gst_structure_get_uint(source, "rb-jitter", &jitter);
    stats->reported = TRUE;
    stats->lost = lost;
    stats->fraction_lost = fraction / 256.0;
    /* The RTP clock of video runs at 90 kHz. */
    stats->jitter_ms = jitter / 90.0;
}

/* The pictures' reports stand for the connection. */
static void read_stream(GstRTSPMedia *media, guint index, RtpStats *stats)
{
    GstRTSPStream *stream = gst_rtsp_media_get_stream(media, index);
    GObject *session = stream ? gst_rtsp_stream_get_rtpsession(stream) : NULL;
    g_autoptr(GstStructure) all = NULL;
    const GValue *sources;

    if (!session)
        return;
    g_object_get(session, "stats", &all, NULL);
    g_object_unref(session);
    sources = all ? gst_structure_get_value(all, "source-stats") : NULL;
    if (!sources)
        return;
    G_GNUC_BEGIN_IGNORE_DEPRECATIONS
    GValueArray *array = g_value_get_boxed(sources);
    for (guint i = 0; array && i < array->n_values; i++)
        read_source(g_value_get_boxed(&array->values[i]), index == 0, stats);
    G_GNUC_END_IGNORE_DEPRECATIONS
}

static void set_double_or_null(JsonObject *object, const char *name, gboolean known, double value)
{
    if (known)
        json_object_set_double_member(object, name, value);
    else
        json_object_set_null_member(object, name);
}

static JsonObject *entry_stats(CamRtspEntry *entry)
{
    JsonObject *object = json_object_new();
    GstRTSPMedia *media = g_weak_ref_get(&entry->media);
    RtpStats stats = {0};

    for (guint i = 0; media && i < gst_rtsp_media_n_streams(media); i++)
        read_stream(media, i, &stats);
    json_object_set_int_member(object, "id", entry->id);
    json_object_set_string_member(object, "address", entry->address);
    cam_json_set_string(object, "user", entry->user);
    cam_json_set_int_or_null(object, "camera", entry->camera >= 0, entry->camera);
    cam_json_set_string(object, "stream", *entry->stream ? entry->stream : NULL);
    cam_json_set_string(object, "transport",
                        !entry->transport                              ? NULL
                        : entry->transport == GST_RTSP_LOWER_TRANS_TCP ? "tcp"
                                                                       : "udp");
    json_object_set_int_member(object, "connected_ms",
                               (gint64)((cam_now() - entry->connected_at) / GST_MSECOND));
    json_object_set_int_member(object, "bytes", (gint64)stats.bytes);
    json_object_set_int_member(object, "packets", (gint64)stats.packets);
    json_object_set_int_member(object, "frames_dropped",
                               media ? (gint64)cam_rtsp_media_dropped(media) : 0);
    cam_json_set_int_or_null(object, "packets_lost", stats.reported, stats.lost);
    set_double_or_null(object, "fraction_lost", stats.reported, stats.fraction_lost);
    set_double_or_null(object, "jitter_ms", stats.reported, stats.jitter_ms);
    g_clear_object(&media);
    return object;
}

JsonArray *cam_rtsp_clients_stats(CamRtspClients *clients)
{
    JsonArray *array = json_array_new();
    GHashTableIter iter;
    gpointer value;

    g_mutex_lock(&clients->lock);
    g_hash_table_iter_init(&iter, clients->table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!((CamRtspEntry *)value)->refused)
            json_array_add_object_element(array, entry_stats(value));
    }
    g_mutex_unlock(&clients->lock);
    return array;
}
