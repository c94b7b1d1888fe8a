#include "rtsp_client_private.h"
#include "events.h"
#include "log.h"

#include <string.h>

/* Connections beyond the limit that wait for their refusal. */
#define REFUSED_ROOM 32
#define LOGIN_TIMEOUT_MS 10000
#define CLOSE_DELAY_MS 200
#define STUCK_LIMIT (10 * GST_SECOND)
#define STUCK_CHECK_MS 1000

static gboolean check_stuck(gpointer data);

CamRtspClients *cam_rtsp_clients_new(void)
{
    CamRtspClients *clients = g_new0(CamRtspClients, 1);

    g_mutex_init(&clients->lock);
    clients->table = g_hash_table_new(NULL, NULL);
    clients->limit = 10;
    clients->stuck_timer = g_timeout_add(STUCK_CHECK_MS, check_stuck, clients);
    return clients;
}

gboolean cam_rtsp_clients_any(CamRtspClients *clients)
{
    gboolean any;

    g_mutex_lock(&clients->lock);
    any = g_hash_table_size(clients->table) > 0;
    g_mutex_unlock(&clients->lock);
    return any;
}

void cam_rtsp_clients_free(CamRtspClients *clients)
{
    g_source_remove(clients->stuck_timer);
    g_hash_table_unref(clients->table);
    g_mutex_clear(&clients->lock);
    g_free(clients);
}

void cam_rtsp_clients_set_limit(CamRtspClients *clients, int max_connections)
{
    g_mutex_lock(&clients->lock);
    clients->limit = max_connections;
    g_mutex_unlock(&clients->lock);
}

/* With lock held. */
static void emit(const CamRtspEntry *entry, const char *event)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "event", event);
    json_object_set_int_member(object, "id", entry->id);
    json_object_set_string_member(object, "address", entry->address);
    cam_json_set_string(object, "user", entry->user);
    cam_json_set_int_or_null(object, "camera", entry->camera >= 0, entry->camera);
    cam_json_set_string(object, "stream", *entry->stream ? entry->stream : NULL);
    cam_event_emit("rtsp.client", object);
}

static gboolean close_now(gpointer data)
{
    gst_rtsp_client_close(data);
    return G_SOURCE_REMOVE;
}

/* A source that its context never dispatches (the thread ends with its client) would keep the
 * client, its socket and the context for ever. */
static void drop_closing(CamRtspEntry *entry)
{
    if (!entry->closing)
        return;
    g_source_destroy(entry->closing);
    g_clear_pointer(&entry->closing, g_source_unref);
}

/* With lock held. A client is closed by its own thread, where nothing of it can be in use. */
static void close_entry(CamRtspEntry *entry, guint delay_ms)
{
    drop_closing(entry);
    entry->closing = g_timeout_source_new(delay_ms);
    g_source_set_callback(entry->closing, close_now, g_object_ref(entry->client), g_object_unref);
    g_source_attach(entry->closing, entry->context);
}

static void entry_free(CamRtspEntry *entry)
{
    drop_closing(entry);
    /* A TLS handshake that nobody finishes holds on to its connection, whose socket stays open
     * then.
     */
    if (entry->socket) {
        g_socket_shutdown(entry->socket, TRUE, TRUE, NULL);
        g_socket_close(entry->socket, NULL);
    }
    g_clear_object(&entry->socket);
    g_weak_ref_clear(&entry->media);
    g_clear_pointer(&entry->context, g_main_context_unref);
    g_free(entry->address);
    g_free(entry->user);
    g_free(entry->nonce);
    g_free(entry);
}

static void on_closed(GstRTSPClient *client, gpointer user_data)
{
    CamRtspClients *clients = user_data;
    CamRtspEntry *entry;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    g_hash_table_remove(clients->table, client);
    /* No timer may outlive the table, which ends when it is empty. */
    if (entry)
        g_clear_handle_id(&entry->login_timer, g_source_remove);
    if (entry && !entry->refused && entry->authenticated)
        emit(entry, "closed");
    g_mutex_unlock(&clients->lock);
    if (entry)
        entry_free(entry);
}

static void set_playing(CamRtspClients *clients, GstRTSPClient *client, GstRTSPContext *ctx,
                        gboolean playing)
{
    /* The context of a PAUSE has no media of its own. */
    GstRTSPMedia *media = ctx->sessmedia ? gst_rtsp_session_media_get_media(ctx->sessmedia) : NULL;
    CamRtspEntry *entry;

    if (media)
        cam_rtsp_media_set_playing(media, playing);
    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry && playing && !entry->played) {
        entry->played = TRUE;
        emit(entry, "play");
    }
    g_mutex_unlock(&clients->lock);
}

static void on_play(GstRTSPClient *client, GstRTSPContext *ctx, gpointer user_data)
{
    set_playing(user_data, client, ctx, TRUE);
}

/* What the media makes while its transports go would be lost to the client. (What an interleaved
 * connection has not taken by then still is.) */
static GstRTSPStatusCode on_pre_pause(GstRTSPClient *client, GstRTSPContext *ctx,
                                      gpointer user_data)
{
    g_autoptr(GstElement) bin =
        gst_rtsp_media_get_element(gst_rtsp_session_media_get_media(ctx->sessmedia));
    g_autoptr(GstObject) pipeline = gst_object_get_parent(GST_OBJECT(bin));

    if (gst_rtsp_session_media_get_rtsp_state(ctx->sessmedia) == GST_RTSP_STATE_PLAYING)
        gst_element_set_state(GST_ELEMENT(pipeline), GST_STATE_PAUSED);
    return GST_RTSP_STS_OK;
}

static void on_pause(GstRTSPClient *client, GstRTSPContext *ctx, gpointer user_data)
{
    set_playing(user_data, client, ctx, FALSE);
}

static void on_setup(GstRTSPClient *client, GstRTSPContext *ctx, gpointer user_data)
{
    CamRtspClients *clients = user_data;
    const GstRTSPTransport *transport;
    CamRtspEntry *entry;

    if (!ctx->trans)
        return;
    transport = gst_rtsp_stream_transport_get_transport(ctx->trans);
    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry)
        entry->transport = transport->lower_transport;
    g_mutex_unlock(&clients->lock);
}

/* The entry may be gone before its timer is, so the timer knows no more than the number. */
typedef struct {
    CamRtspClients *clients;
    gint64 id;
} LoginTimer;

static gboolean login_too_late(gpointer data)
{
    LoginTimer *timer = data;
    GHashTableIter iter;
    gpointer value;

    g_mutex_lock(&timer->clients->lock);
    g_hash_table_iter_init(&iter, timer->clients->table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        CamRtspEntry *entry = value;

        if (entry->id != timer->id)
            continue;
        entry->login_timer = 0;
        if (!entry->authenticated)
            close_entry(entry, 0);
    }
    g_mutex_unlock(&timer->clients->lock);
    return G_SOURCE_REMOVE;
}

static guint start_login_timer(CamRtspClients *clients, gint64 id)
{
    LoginTimer *timer = g_new(LoginTimer, 1);

    *timer = (LoginTimer){clients, id};
    return g_timeout_add_full(G_PRIORITY_DEFAULT, LOGIN_TIMEOUT_MS, login_too_late, timer, g_free);
}

static int count(CamRtspClients *clients)
{
    GHashTableIter iter;
    gpointer value;
    int n = 0;

    g_hash_table_iter_init(&iter, clients->table);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        n += !((CamRtspEntry *)value)->refused;
    return n;
}

gboolean cam_rtsp_clients_flooded(CamRtspClients *clients)
{
    gboolean flooded;

    g_mutex_lock(&clients->lock);
    flooded = (int)g_hash_table_size(clients->table) >= clients->limit + REFUSED_ROOM;
    g_mutex_unlock(&clients->lock);
    return flooded;
}

void cam_rtsp_clients_add(CamRtspClients *clients, GstRTSPClient *client)
{
    CamRtspEntry *entry = g_new0(CamRtspEntry, 1);
    GstRTSPConnection *connection = gst_rtsp_client_get_connection(client);

    entry->client = client;
    entry->address = g_strdup(gst_rtsp_connection_get_ip(connection));
    g_set_object(&entry->socket, gst_rtsp_connection_get_read_socket(connection));
    entry->connected_at = cam_now();
    entry->camera = -1;
    g_weak_ref_init(&entry->media, NULL);
    g_mutex_lock(&clients->lock);
    entry->id = ++clients->next_id;
    entry->refused = count(clients) >= clients->limit;
    entry->login_timer = start_login_timer(clients, entry->id);
    g_hash_table_insert(clients->table, client, entry);
    if (entry->refused)
        emit(entry, "refused");
    g_mutex_unlock(&clients->lock);
    g_signal_connect(client, "closed", G_CALLBACK(on_closed), clients);
    g_signal_connect(client, "setup-request", G_CALLBACK(on_setup), clients);
    g_signal_connect(client, "play-request", G_CALLBACK(on_play), clients);
    g_signal_connect(client, "pre-pause-request", G_CALLBACK(on_pre_pause), clients);
    g_signal_connect(client, "pause-request", G_CALLBACK(on_pause), clients);
}

gboolean cam_rtsp_client_refused(CamRtspClients *clients, GstRTSPClient *client)
{
    CamRtspEntry *entry;
    gboolean refused;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    refused = entry && entry->refused;
    g_mutex_unlock(&clients->lock);
    return refused;
}

void cam_rtsp_client_seen(CamRtspClients *clients, GstRTSPClient *client)
{
    CamRtspEntry *entry;
    GSource *source = g_main_current_source();

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry && !entry->context && source)
        entry->context = g_main_context_ref(g_source_get_context(source));
    g_mutex_unlock(&clients->lock);
}

void cam_rtsp_client_authenticated(CamRtspClients *clients, GstRTSPClient *client, const char *user,
                                   const char *nonce)
{
    CamRtspEntry *entry;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry) {
        entry->authenticated = TRUE;
        if (g_strcmp0(entry->user, user) != 0) {
            g_free(entry->user);
            entry->user = g_strdup(user);
        }
        if (nonce && g_strcmp0(entry->nonce, nonce) != 0) {
            g_free(entry->nonce);
            entry->nonce = g_strdup(nonce);
        }
    }
    g_mutex_unlock(&clients->lock);
}

void cam_rtsp_client_login(CamRtspClients *clients, GstRTSPClient *client, char **user,
                           char **nonce)
{
    CamRtspEntry *entry;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    *user = entry ? g_strdup(entry->user) : NULL;
    *nonce = entry ? g_strdup(entry->nonce) : NULL;
    g_mutex_unlock(&clients->lock);
}

int cam_rtsp_client_camera(CamRtspClients *clients, GstRTSPClient *client)
{
    CamRtspEntry *entry;
    int camera;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    camera = entry ? entry->camera : -1;
    g_mutex_unlock(&clients->lock);
    return camera;
}

gboolean cam_rtsp_client_plays_recording(CamRtspClients *clients, GstRTSPClient *client)
{
    GstRTSPMedia *media = NULL;
    CamRtspEntry *entry;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry && entry->is_recording)
        media = g_weak_ref_get(&entry->media);
    g_mutex_unlock(&clients->lock);
    /* Never with the lock: the last reference ends a pipeline. */
    if (!media)
        return FALSE;
    g_object_unref(media);
    return TRUE;
}

void cam_rtsp_client_set_media(CamRtspClients *clients, GstRTSPClient *client, GstRTSPMedia *media,
                               int camera, const char *stream)
{
    CamRtspEntry *entry;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry) {
        g_weak_ref_set(&entry->media, media);
        entry->camera = camera;
        entry->is_recording = !stream;
        g_strlcpy(entry->stream, stream ? stream : "recording", sizeof(entry->stream));
    }
    g_mutex_unlock(&clients->lock);
}

void cam_rtsp_client_close_soon(CamRtspClients *clients, GstRTSPClient *client)
{
    CamRtspEntry *entry;

    g_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->table, client);
    if (entry)
        close_entry(entry, CLOSE_DELAY_MS);
    g_mutex_unlock(&clients->lock);
}

static gboolean matches(const CamRtspEntry *entry, const CamRtspMatch *match)
{
    if (entry->refused || (match->id && entry->id != match->id))
        return FALSE;
    if (match->user && g_strcmp0(entry->user, match->user) != 0)
        return FALSE;
    /* A camera that goes takes its streams with it, not what was recorded of it. */
    if (match->camera >= 0 && (entry->camera != match->camera || entry->is_recording))
        return FALSE;
    if (match->stream && !g_str_equal(entry->stream, match->stream))
        return FALSE;
    if (match->not_among && (!entry->user || g_hash_table_contains(match->not_among, entry->user)))
        return FALSE;
    return TRUE;
}

int cam_rtsp_clients_close(CamRtspClients *clients, const CamRtspMatch *match)
{
    GHashTableIter iter;
    gpointer value;
    int closed = 0;

    g_mutex_lock(&clients->lock);
    g_hash_table_iter_init(&iter, clients->table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (matches(value, match)) {
            close_entry(value, 0);
            closed++;
        }
    }
    g_mutex_unlock(&clients->lock);
    return closed;
}

/* A client that stopped reading harms nobody, but it holds a connection and memory. */
static gboolean check_stuck(gpointer data)
{
    CamRtspClients *clients = data;
    GHashTableIter iter;
    gpointer value;

    g_mutex_lock(&clients->lock);
    g_hash_table_iter_init(&iter, clients->table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        CamRtspEntry *entry = value;
        GstRTSPMedia *media = g_weak_ref_get(&entry->media);

        if (media && cam_rtsp_media_stuck_for(media) > STUCK_LIMIT) {
            cam_log(CAM_LOG_WARN, "rtsp", "client %" G_GINT64_FORMAT " does not read; closing it",
                    entry->id);
            close_entry(entry, 0);
        }
        g_clear_object(&media);
    }
    g_mutex_unlock(&clients->lock);
    return G_SOURCE_CONTINUE;
}
