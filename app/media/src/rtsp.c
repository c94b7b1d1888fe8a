#include "rtsp.h"
#include "log.h"
#include "rtsp_auth.h"
#include "rtsp_playback.h"
#include "rtsp_playback_media.h"
#include "rtsp_recording.h"

#include <gio/gio.h>

#define SESSION_CLEANUP_S 2
#define CLIENTS_END_US (500 * 1000)

/* One port. */
typedef struct {
    CamRtspAuth *auth;
    GstRTSPServer *server;
    GSource *source; /* NULL: does not listen */
    char *address;
    int port;
} Listener;

struct _CamRtsp {
    CamRtspClients *clients;
    CamAccess *access;
    GstRTSPMountPoints *mounts;
    GstRTSPThreadPool *threads;
    GstRTSPSessionPool *sessions;
    Listener plain, tls;
    guint cleanup_timer;
};

typedef struct {
    GstRTSPServer parent;
    CamRtspClients *clients;
} CamServer;

typedef struct {
    GstRTSPServerClass parent;
} CamServerClass;

GType cam_server_get_type(void);
G_DEFINE_TYPE(CamServer, cam_server, GST_TYPE_RTSP_SERVER)

static GstRTSPClient *create_client(GstRTSPServer *server)
{
    CamServer *self = (CamServer *)server;
    g_autoptr(GstRTSPSessionPool) sessions = NULL;
    g_autoptr(GstRTSPMountPoints) mounts = NULL;
    g_autoptr(GstRTSPAuth) auth = NULL;
    g_autoptr(GstRTSPThreadPool) threads = NULL;
    GstRTSPClient *client;

    /* A thread and a few descriptors even for one that is refused: not without end. */
    if (cam_rtsp_clients_flooded(self->clients))
        return NULL;
    client = g_object_new(cam_rtsp_client_get_type(), NULL);
    sessions = gst_rtsp_server_get_session_pool(server);
    mounts = gst_rtsp_server_get_mount_points(server);
    auth = gst_rtsp_server_get_auth(server);
    threads = gst_rtsp_server_get_thread_pool(server);
    gst_rtsp_client_set_session_pool(client, sessions);
    gst_rtsp_client_set_mount_points(client, mounts);
    gst_rtsp_client_set_auth(client, auth);
    gst_rtsp_client_set_thread_pool(client, threads);
    gst_rtsp_client_set_content_length_limit(client,
                                             gst_rtsp_server_get_content_length_limit(server));
    return client;
}

static void cam_server_class_init(CamServerClass *klass)
{
    klass->parent.create_client = create_client;
}

static void cam_server_init(CamServer *self)
{
}

static void on_connected(GstRTSPServer *server, GstRTSPClient *client, gpointer user_data)
{
    cam_rtsp_clients_add(user_data, client);
}

static void listener_init(CamRtsp *rtsp, Listener *listener, gboolean tls)
{
    GstRTSPServer *server = g_object_new(cam_server_get_type(), NULL);

    listener->auth = cam_rtsp_auth_new(
        &(CamRtspAuthSetup){rtsp->clients, rtsp->access, rtsp->mounts, .tls = tls});
    listener->server = server;
    ((CamServer *)server)->clients = rtsp->clients;
    gst_rtsp_server_set_mount_points(server, rtsp->mounts);
    gst_rtsp_server_set_thread_pool(server, rtsp->threads);
    gst_rtsp_server_set_session_pool(server, rtsp->sessions);
    gst_rtsp_server_set_auth(server, GST_RTSP_AUTH(listener->auth));
    /* No request of RTSP needs a body of any size. */
    gst_rtsp_server_set_content_length_limit(server, 64 * 1024);
    g_signal_connect(server, "client-connected", G_CALLBACK(on_connected), rtsp->clients);
}

static gboolean clean_sessions(gpointer sessions)
{
    gst_rtsp_session_pool_cleanup(sessions);
    return G_SOURCE_CONTINUE;
}

static void on_media_created(GstRTSPMedia *media, int camera, const char *stream,
                             gpointer user_data)
{
    CamRtsp *rtsp = user_data;
    GstRTSPContext *ctx = gst_rtsp_context_get_current();

    if (ctx && ctx->client)
        cam_rtsp_client_set_media(rtsp->clients, ctx->client, media, camera, stream);
}

CamRtsp *cam_rtsp_new(void)
{
    CamRtsp *rtsp = g_new0(CamRtsp, 1);

    rtsp->clients = cam_rtsp_clients_new();
    rtsp->access = cam_access_new();
    rtsp->mounts = gst_rtsp_mount_points_new();
    rtsp->sessions = gst_rtsp_session_pool_new();
    rtsp->threads = gst_rtsp_thread_pool_new();
    /* A thread for each client: a DESCRIBE waits for a key frame, and a slow client for itself. */
    gst_rtsp_thread_pool_set_max_threads(rtsp->threads, -1);
    gst_rtsp_mount_points_add_factory(rtsp->mounts, CAM_RECORDING_PATH,
                                      cam_playback_factory_new(on_media_created, rtsp));
    listener_init(rtsp, &rtsp->plain, FALSE);
    listener_init(rtsp, &rtsp->tls, TRUE);
    rtsp->cleanup_timer = g_timeout_add_seconds(SESSION_CLEANUP_S, clean_sessions, rtsp->sessions);
    return rtsp;
}

static void stop_listening(Listener *listener)
{
    if (!listener->source)
        return;
    g_source_destroy(listener->source);
    g_clear_pointer(&listener->source, g_source_unref);
    g_clear_pointer(&listener->address, g_free);
}

static void listener_clear(Listener *listener)
{
    g_object_unref(listener->server);
    g_object_unref(listener->auth);
}

static GstRTSPFilterResult remove_client(GstRTSPServer *server, GstRTSPClient *client,
                                         gpointer user_data)
{
    return GST_RTSP_FILTER_REMOVE;
}

/* Clients end on threads of their own. FALSE: some have not, within the time that there is. */
static gboolean end_clients(CamRtsp *rtsp)
{
    gint64 deadline = g_get_monotonic_time() + CLIENTS_END_US;

    gst_rtsp_server_client_filter(rtsp->plain.server, remove_client, NULL);
    gst_rtsp_server_client_filter(rtsp->tls.server, remove_client, NULL);
    while (cam_rtsp_clients_any(rtsp->clients)) {
        if (g_get_monotonic_time() > deadline)
            return FALSE;
        g_usleep(2000);
    }
    return TRUE;
}

void cam_rtsp_free(CamRtsp *rtsp)
{
    stop_listening(&rtsp->plain);
    stop_listening(&rtsp->tls);
    g_source_remove(rtsp->cleanup_timer);
    /* What is still in use stays: the process is about to end. */
    if (!end_clients(rtsp))
        return;
    listener_clear(&rtsp->plain);
    listener_clear(&rtsp->tls);
    g_object_unref(rtsp->sessions);
    g_object_unref(rtsp->mounts);
    g_object_unref(rtsp->threads);
    cam_access_free(rtsp->access);
    cam_rtsp_clients_free(rtsp->clients);
    g_free(rtsp);
}

static int listen_errno(const GError *error)
{
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE))
        return EADDRINUSE;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        return EACCES;
    return EADDRNOTAVAIL;
}

static gboolean is_listening_on(const Listener *listener, const char *address, int port)
{
    return listener->source && g_str_equal(listener->address, address) &&
           (port == 0 || port == listener->port);
}

static gboolean on_incoming(GSocket *socket, GIOCondition condition, gpointer server)
{
    return gst_rtsp_server_io_func(socket, condition, server);
}

static int port_of(GSocket *socket)
{
    GSocketAddress *address = g_socket_get_local_address(socket, NULL);
    int port = address ? g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(address)) : -1;

    g_clear_object(&address);
    return port;
}

/* NULL: see ERROR_NUMBER. */
static GSocket *open_port(Listener *listener, const char *address, int port, int *error_number)
{
    g_autofree char *service = g_strdup_printf("%d", port);
    g_autoptr(GError) error = NULL;
    GSocket *socket;

    gst_rtsp_server_set_address(listener->server, address);
    gst_rtsp_server_set_service(listener->server, service);
    socket = gst_rtsp_server_create_socket(listener->server, NULL, &error);
    if (!socket)
        *error_number = listen_errno(error);
    return socket;
}

/* The server's own source would allow no second one. */
static void listen_on(Listener *listener, GSocket *socket, const char *address)
{
    stop_listening(listener);
    listener->source = g_socket_create_source(socket, G_IO_IN, NULL);
    g_source_set_callback(listener->source, G_SOURCE_FUNC(on_incoming),
                          g_object_ref(listener->server), g_object_unref);
    g_source_attach(listener->source, NULL);
    listener->address = g_strdup(address);
    listener->port = port_of(socket);
}

/* What listens goes only when all is there that is to come instead. */
static gboolean listen_on_ports(CamRtsp *rtsp, const CamRtspSetup *setup, int *error_number)
{
    gboolean want_tls = setup->tls_port >= 0;
    gboolean move_plain = !is_listening_on(&rtsp->plain, setup->address, setup->port);
    gboolean move_tls = want_tls && !is_listening_on(&rtsp->tls, setup->address, setup->tls_port);
    g_autoptr(GSocket) plain = NULL;
    g_autoptr(GSocket) tls = NULL;

    if (move_plain && !(plain = open_port(&rtsp->plain, setup->address, setup->port, error_number)))
        return FALSE;
    if (move_tls && !(tls = open_port(&rtsp->tls, setup->address, setup->tls_port, error_number)))
        return FALSE;
    if (plain)
        listen_on(&rtsp->plain, plain, setup->address);
    if (tls)
        listen_on(&rtsp->tls, tls, setup->address);
    else if (!want_tls)
        stop_listening(&rtsp->tls);
    return TRUE;
}

gboolean cam_rtsp_start(CamRtsp *rtsp, const CamRtspSetup *setup, CamRtspPorts *ports,
                        int *error_number)
{
    if (!listen_on_ports(rtsp, setup, error_number))
        return FALSE;
    /* Still before anybody is let in: that is this thread's work too. */
    if (setup->certificate)
        cam_rtsp_set_certificate(rtsp, setup->certificate);
    cam_rtsp_clients_set_limit(rtsp->clients, setup->max_connections);
    cam_access_configure(rtsp->access, setup->realm, setup->basic);
    *ports = (CamRtspPorts){rtsp->plain.port, rtsp->tls.source ? rtsp->tls.port : -1};
    return TRUE;
}

void cam_rtsp_set_certificate(CamRtsp *rtsp, GTlsCertificate *certificate)
{
    gst_rtsp_auth_set_tls_certificate(GST_RTSP_AUTH(rtsp->tls.auth), certificate);
}

void cam_rtsp_set_users(CamRtsp *rtsp, GHashTable *users)
{
    GHashTable *same = cam_access_set_users(rtsp->access, users);

    cam_rtsp_clients_close(rtsp->clients, &(CamRtspMatch){.camera = -1, .not_among = same});
    g_hash_table_unref(same);
}

void cam_rtsp_set_lockout(CamRtsp *rtsp, GHashTable *users, GPtrArray *addresses)
{
    cam_access_set_lockout(rtsp->access, users, addresses);
}

void cam_rtsp_mount(CamRtsp *rtsp, const char *path, CamHub *hub, CamAudio *audio, int camera,
                    const char *stream)
{
    CamRtspFactorySetup setup = {hub, audio, camera, stream, on_media_created, rtsp};

    gst_rtsp_mount_points_add_factory(rtsp->mounts, path, cam_rtsp_factory_new(&setup));
}

void cam_rtsp_unmount(CamRtsp *rtsp, const char *path)
{
    gst_rtsp_mount_points_remove_factory(rtsp->mounts, path);
}

int cam_rtsp_kick_user(CamRtsp *rtsp, const char *user)
{
    return cam_rtsp_clients_close(rtsp->clients, &(CamRtspMatch){.camera = -1, .user = user});
}

int cam_rtsp_kick_client(CamRtsp *rtsp, gint64 id)
{
    return cam_rtsp_clients_close(rtsp->clients, &(CamRtspMatch){.camera = -1, .id = id});
}

int cam_rtsp_kick_stream(CamRtsp *rtsp, int camera, const char *stream)
{
    return cam_rtsp_clients_close(rtsp->clients,
                                  &(CamRtspMatch){.camera = camera, .stream = stream});
}

JsonArray *cam_rtsp_stats(CamRtsp *rtsp)
{
    return cam_rtsp_clients_stats(rtsp->clients);
}
