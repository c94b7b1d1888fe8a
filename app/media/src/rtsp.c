#include "rtsp.h"
#include "log.h"
#include "rtsp_auth.h"

#include <gio/gio.h>

#define SESSION_CLEANUP_S 2
#define CLIENTS_END_US (500 * 1000)

struct _CamRtsp {
    CamRtspClients *clients;
    CamRtspAuth *auth;
    GstRTSPMountPoints *mounts;
    GstRTSPThreadPool *threads;
    GstRTSPServer *server; /* NULL until started */
    GSource *listener;
    char *address; /* that is listened on */
    int port;
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

    /* A thread and a few descriptors even for one that is refused: not without end. */
    if (cam_rtsp_clients_flooded(self->clients))
        return NULL;
    return GST_RTSP_SERVER_CLASS(cam_server_parent_class)->create_client(server);
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

CamRtsp *cam_rtsp_new(void)
{
    CamRtsp *rtsp = g_new0(CamRtsp, 1);

    rtsp->clients = cam_rtsp_clients_new();
    rtsp->auth = cam_rtsp_auth_new(rtsp->clients);
    rtsp->mounts = gst_rtsp_mount_points_new();
    rtsp->threads = gst_rtsp_thread_pool_new();
    /* A thread for each client: a DESCRIBE waits for a key frame, and a slow client for itself. */
    gst_rtsp_thread_pool_set_max_threads(rtsp->threads, -1);
    return rtsp;
}

static gboolean clean_sessions(gpointer data)
{
    GstRTSPSessionPool *pool = gst_rtsp_server_get_session_pool(data);

    gst_rtsp_session_pool_cleanup(pool);
    g_object_unref(pool);
    return G_SOURCE_CONTINUE;
}

static void stop_listening(CamRtsp *rtsp)
{
    if (rtsp->listener) {
        g_source_destroy(rtsp->listener);
        g_clear_pointer(&rtsp->listener, g_source_unref);
    }
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

    gst_rtsp_server_client_filter(rtsp->server, remove_client, NULL);
    while (cam_rtsp_clients_any(rtsp->clients)) {
        if (g_get_monotonic_time() > deadline)
            return FALSE;
        g_usleep(2000);
    }
    return TRUE;
}

void cam_rtsp_free(CamRtsp *rtsp)
{
    stop_listening(rtsp);
    if (rtsp->server) {
        g_source_remove(rtsp->cleanup_timer);
        /* What is still in use stays: the process is about to end. */
        if (!end_clients(rtsp))
            return;
        g_object_unref(rtsp->server);
    }
    g_object_unref(rtsp->mounts);
    g_object_unref(rtsp->threads);
    g_object_unref(rtsp->auth);
    cam_rtsp_clients_free(rtsp->clients);
    g_free(rtsp->address);
    g_free(rtsp);
}

static GstRTSPServer *server_new(CamRtsp *rtsp)
{
    GstRTSPServer *server = g_object_new(cam_server_get_type(), NULL);

    ((CamServer *)server)->clients = rtsp->clients;
    gst_rtsp_server_set_mount_points(server, rtsp->mounts);
    gst_rtsp_server_set_thread_pool(server, rtsp->threads);
    gst_rtsp_server_set_auth(server, GST_RTSP_AUTH(rtsp->auth));
    /* No request of RTSP needs a body of any size. */
    gst_rtsp_server_set_content_length_limit(server, 64 * 1024);
    g_signal_connect(server, "client-connected", G_CALLBACK(on_connected), rtsp->clients);
    return server;
}

static int listen_errno(const GError *error)
{
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE))
        return EADDRINUSE;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        return EACCES;
    return EADDRNOTAVAIL;
}

static gboolean is_listening_on(CamRtsp *rtsp, const CamRtspSetup *setup)
{
    return rtsp->listener && g_str_equal(rtsp->address, setup->address) &&
           (setup->port == 0 || setup->port == rtsp->port);
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

/* The old listener goes only when the new one is there; the server's own source would allow no
 * second one. */
static gboolean listen_on(CamRtsp *rtsp, const CamRtspSetup *setup, int *error_number)
{
    g_autofree char *service = g_strdup_printf("%d", setup->port);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) socket = NULL;

    gst_rtsp_server_set_address(rtsp->server, setup->address);
    gst_rtsp_server_set_service(rtsp->server, service);
    socket = gst_rtsp_server_create_socket(rtsp->server, NULL, &error);
    if (!socket) {
        *error_number = listen_errno(error);
        return FALSE;
    }
    stop_listening(rtsp);
    rtsp->listener = g_socket_create_source(socket, G_IO_IN, NULL);
    g_source_set_callback(rtsp->listener, G_SOURCE_FUNC(on_incoming), g_object_ref(rtsp->server),
                          g_object_unref);
    g_source_attach(rtsp->listener, NULL);
    g_free(rtsp->address);
    rtsp->address = g_strdup(setup->address);
    rtsp->port = port_of(socket);
    return TRUE;
}

int cam_rtsp_start(CamRtsp *rtsp, const CamRtspSetup *setup, int *error_number)
{
    if (!rtsp->server) {
        rtsp->server = server_new(rtsp);
        rtsp->cleanup_timer =
            g_timeout_add_seconds(SESSION_CLEANUP_S, clean_sessions, rtsp->server);
    }
    if (!is_listening_on(rtsp, setup) && !listen_on(rtsp, setup, error_number))
        return -1;
    cam_rtsp_clients_set_limit(rtsp->clients, setup->max_connections);
    cam_rtsp_auth_configure(rtsp->auth, setup->realm, setup->basic);
    return rtsp->port;
}

void cam_rtsp_set_users(CamRtsp *rtsp, GHashTable *users)
{
    GHashTable *same = cam_rtsp_auth_set_users(rtsp->auth, users);

    cam_rtsp_clients_close(rtsp->clients, &(CamRtspMatch){.camera = -1, .not_among = same});
    g_hash_table_unref(same);
}

static void on_media_created(GstRTSPMedia *media, int camera, const char *stream,
                             gpointer user_data)
{
    CamRtsp *rtsp = user_data;
    GstRTSPContext *ctx = gst_rtsp_context_get_current();

    if (ctx && ctx->client)
        cam_rtsp_client_set_media(rtsp->clients, ctx->client, media, camera, stream);
}

void cam_rtsp_mount(CamRtsp *rtsp, const char *path, CamHub *hub, int camera, const char *stream)
{
    CamRtspFactorySetup setup = {hub, camera, stream, on_media_created, rtsp};

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
