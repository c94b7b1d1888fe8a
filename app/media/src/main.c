/* camera-media: one process, one peer. */
#include "ask.h"
#include "audio_codec.h"
#include "control.h"
#include "encoder_choice.h"
#include "events.h"
#include "log.h"

#include <errno.h>
#include <glib-unix.h>
#include <gst/gst.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* GLib has no other way to say it than this variable of its GnuTLS module, which the module reads
 * once.
 */
#define TLS_PRIORITY_NAME "G_TLS_GNUTLS_PRIORITY"
#define TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define NO_PEER_TIMEOUT_MS 10000
#define EXIT_NO_SOCKET 2
#define EXIT_NO_PEER 3
/* All in all the exit takes less than 3 s: after the recordings this much is left to the rest. */
#define RECORDERS_TIMEOUT_MS 2200
#define EXIT_TIMEOUT_MS 2900

typedef struct {
    GMainLoop *loop;
    CamService *service;
    CamRpc *rpc;
    char *socket_path;
    int listen_fd;
    guint listen_watch, no_peer_timer;
    int exit_code;
    gint64 exit_deadline;
} Helper;

static gboolean on_exit_poll(gpointer data)
{
    Helper *helper = data;

    if (cam_service_recorders(helper->service) > 0 &&
        g_get_monotonic_time() < helper->exit_deadline)
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(helper->loop);
    return G_SOURCE_REMOVE;
}

static void on_exit_too_late(int number)
{
    _exit(0);
}

static void shut_down(Helper *helper)
{
    const struct itimerval last = {
        .it_value = {.tv_sec = EXIT_TIMEOUT_MS / 1000, .tv_usec = EXIT_TIMEOUT_MS % 1000 * 1000}};

    if (helper->exit_deadline)
        return;
    helper->exit_deadline = g_get_monotonic_time() + RECORDERS_TIMEOUT_MS * 1000;
    /* Whatever hangs (a device, a disk), the exit comes; what was recorded so far is on the disk
     * in whole fragments. */
    signal(SIGALRM, on_exit_too_late);
    setitimer(ITIMER_REAL, &last, NULL);
    cam_asks_set_sender(NULL, NULL);
    cam_service_shut_down(helper->service);
    g_timeout_add(10, on_exit_poll, helper);
}

static gboolean on_terminate(gpointer data)
{
    cam_log(CAM_LOG_INFO, "main", "asked to terminate");
    shut_down(data);
    return G_SOURCE_CONTINUE;
}

static void on_peer_gone(gpointer data)
{
    cam_log(CAM_LOG_INFO, "main", "the server is gone");
    shut_down(data);
}

static void on_request(CamRpcCall *call, const char *method, JsonObject *params, gpointer data)
{
    Helper *helper = data;

    cam_service_handle(call, method, params, helper->service);
}

static void on_event(const char *method, JsonObject *params, gpointer data)
{
    Helper *helper = data;

    if (helper->rpc)
        cam_rpc_notify(helper->rpc, method, json_object_ref(params));
}

static void on_ask(const char *id, const char *method, JsonObject *params, gpointer data)
{
    Helper *helper = data;

    cam_rpc_ask(helper->rpc, id, method, params);
}

static void stop_listening(Helper *helper)
{
    if (helper->listen_fd < 0)
        return;
    g_clear_handle_id(&helper->listen_watch, g_source_remove);
    g_clear_handle_id(&helper->no_peer_timer, g_source_remove);
    close(helper->listen_fd);
    helper->listen_fd = -1;
    unlink(helper->socket_path);
}

static gboolean on_connection(int fd, GIOCondition condition, gpointer data)
{
    Helper *helper = data;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    if (peer < 0)
        return G_SOURCE_CONTINUE;
    helper->listen_watch = 0;
    stop_listening(helper);
    helper->rpc = cam_rpc_new(peer, on_request, on_peer_gone, helper);
    cam_asks_set_sender(on_ask, helper);
    return G_SOURCE_REMOVE;
}

static gboolean on_no_peer(gpointer data)
{
    Helper *helper = data;

    cam_log(CAM_LOG_ERROR, "main", "nobody connected");
    helper->no_peer_timer = 0;
    helper->exit_code = EXIT_NO_PEER;
    g_main_loop_quit(helper->loop);
    return G_SOURCE_REMOVE;
}

static gboolean start_listening(Helper *helper)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mode_t old_mask;
    int bound;

    if (strlen(helper->socket_path) >= sizeof(address.sun_path)) {
        cam_log(CAM_LOG_ERROR, "main", "the socket's path is too long");
        return FALSE;
    }
    strcpy(address.sun_path, helper->socket_path);
    helper->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* The mode must be right from the first moment on. */
    old_mask = umask(0177);
    bound = bind(helper->listen_fd, (struct sockaddr *)&address, sizeof(address));
    umask(old_mask);
    if (bound != 0 || listen(helper->listen_fd, 1) != 0) {
        cam_log(CAM_LOG_ERROR, "main", "%s: %s", helper->socket_path, g_strerror(errno));
        return FALSE;
    }
    helper->listen_watch = g_unix_fd_add(helper->listen_fd, G_IO_IN, on_connection, helper);
    helper->no_peer_timer = g_timeout_add(NO_PEER_TIMEOUT_MS, on_no_peer, helper);
    return TRUE;
}

static gboolean parse_options(int *argc, char ***argv, char **socket_path)
{
    g_autofree char *level = NULL;
    const GOptionEntry entries[] = {
        {"socket", 0, 0, G_OPTION_ARG_FILENAME, socket_path, "The Unix socket to serve", "PATH"},
        {"log-level", 0, 0, G_OPTION_ARG_STRING, &level, "error, warn, info or debug", "LEVEL"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, &error)) {
        g_printerr("camera-media: %s\n", error->message);
        return FALSE;
    }
    if (!*socket_path || *argc > 1 || (level && !cam_log_set_level(level))) {
        g_printerr("usage: camera-media --socket PATH [--log-level error|warn|info|debug]\n");
        return FALSE;
    }
    return TRUE;
}

static void run(Helper *helper)
{
    helper->loop = g_main_loop_new(NULL, FALSE);
    helper->service = cam_service_new();
    cam_events_set_sink(on_event, helper);
    if (!start_listening(helper)) {
        helper->exit_code = EXIT_NO_SOCKET;
        cam_service_free(helper->service);
        return;
    }
    g_unix_signal_add(SIGTERM, on_terminate, helper);
    g_unix_signal_add(SIGINT, on_terminate, helper);
    g_main_loop_run(helper->loop);
    stop_listening(helper);
    cam_service_free(helper->service);
    /* Events of the last moments, recorder.ended above all, are still in the queue. */
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    cam_events_set_sink(NULL, NULL);
    if (helper->rpc) {
        cam_rpc_flush(helper->rpc, 200);
        cam_rpc_free(helper->rpc);
    }
    g_main_loop_unref(helper->loop);
}

int main(int argc, char **argv)
{
    Helper helper = {.listen_fd = -1};

    /* Nothing that the server has open is the helper's to hold. */
    close_range(STDERR_FILENO + 1, ~0U, 0);
    if (!parse_options(&argc, &argv, &helper.socket_path))
        return 2;
    setenv(TLS_PRIORITY_NAME, TLS_PRIORITY, 1);
    cam_log_capture_glib();
    prctl(PR_SET_NAME, "camera-media");
    signal(SIGPIPE, SIG_IGN);
    /* Frames are large and come and go on many threads: give them back instead of keeping them in
     * an arena per thread. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_ARENA_MAX, 2);
    gst_init(NULL, NULL);
    cam_encoder_choice_probe();
    cam_audio_codecs_probe();
    run(&helper);
    g_free(helper.socket_path);
    return helper.exit_code;
}
