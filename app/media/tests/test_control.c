/* What the server is told, and in which order. */
#include "control.h"
#include "encoder_choice.h"
#include "events.h"
#include "wait.h"

#include <gst/gst.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CAMERA "\"id\": 1"
#define MODE(width) "\"mode\": {\"width\": " width ", \"height\": 120, \"fps\": 10}"

/* The server's end of the socket, and all that it was told: states, and "answer". */
typedef struct {
    int fd;
    CamRpc *rpc;
    CamService *service;
    GByteArray *input;
    GPtrArray *told;
} Server;

static void on_closed(gpointer user_data)
{
}

static void on_event(const char *method, JsonObject *params, gpointer user_data)
{
    cam_rpc_notify(((Server *)user_data)->rpc, method, json_object_ref(params));
}

static void server_init(Server *server)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    *server = (Server){.fd = fds[0],
                       .service = cam_service_new(),
                       .input = g_byte_array_new(),
                       .told = g_ptr_array_new_with_free_func(g_free)};
    server->rpc = cam_rpc_new(fds[1], cam_service_handle, on_closed, server->service);
    cam_events_set_sink(on_event, server);
}

static void server_clear(Server *server)
{
    cam_service_free(server->service);
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    cam_events_set_sink(NULL, NULL);
    cam_rpc_free(server->rpc);
    close(server->fd);
    g_byte_array_unref(server->input);
    g_ptr_array_unref(server->told);
}

static void send_request(Server *server, const char *method, const char *params)
{
    g_autofree char *text = g_strdup_printf(
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"%s\", \"params\": {%s}}", method, params);
    guint32 header[2] = {GUINT32_TO_BE((guint32)strlen(text)), 0};

    g_ptr_array_set_size(server->told, 0);
    g_assert_cmpint(write(server->fd, header, sizeof(header)), ==, sizeof(header));
    g_assert_cmpint(write(server->fd, text, strlen(text)), ==, (gssize)strlen(text));
}

static void take(Server *server, const char *text, gsize length)
{
    g_autofree char *copy = g_strndup(text, length);
    JsonNode *node = json_from_string(copy, NULL);
    JsonObject *object = json_node_get_object(node);

    g_assert_false(json_object_has_member(object, "error"));
    if (json_object_has_member(object, "method"))
        object = json_object_get_object_member(object, "params");
    g_ptr_array_add(server->told, g_strdup(json_object_get_string_member_with_default(
                                      object, "state", "answer")));
    json_node_unref(node);
}

static void receive(Server *server)
{
    guint8 chunk[4096];
    gssize n = recv(server->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    gsize length;

    if (n > 0)
        g_byte_array_append(server->input, chunk, (guint)n);
    while (cam_frame_scan(server->input->data, server->input->len, &length) == CAM_FRAME_COMPLETE) {
        take(server, (const char *)server->input->data + CAM_RPC_HEADER_SIZE, length);
        g_byte_array_remove_range(server->input, 0, (guint)(CAM_RPC_HEADER_SIZE + length));
    }
}

static gboolean was_told(Server *server, const char *what)
{
    receive(server);
    return g_ptr_array_find_with_equal_func(server->told, what, g_str_equal, NULL);
}

static gboolean has_answer(gpointer server)
{
    return was_told(server, "answer");
}

static gboolean is_streaming(gpointer server)
{
    return was_told(server, "streaming");
}

/* With the answer the server has the state that came of its request. */
static void check_order(Server *server, const char *method, const char *params)
{
    send_request(server, method, params);
    g_assert_true(wait_for(has_answer, server));
    g_assert_cmpstr(server->told->pdata[0], ==, "starting");
    g_assert_true(wait_for(is_streaming, server));
}

static void test_state_before_answer(void)
{
    Server server;

    server_init(&server);
    check_order(&server, "camera.add",
                CAMERA ", " MODE("160") ", \"source\": {\"type\": \"test\"}, \"controls\": "
                                        "{\"brightness\": 50, \"contrast\": 50, \"saturation\": "
                                        "50}, \"streams\": [{\"name\": \"s\", \"width\": 160, "
                                        "\"height\": 120, \"fps\": 10, \"bitrate_kbps\": 100, "
                                        "\"gop\": 10}]");
    check_order(&server, "camera.configure", CAMERA ", " MODE("320"));
    check_order(&server, "camera.restart", CAMERA);
    server_clear(&server);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_encoder_choice_probe();
    g_test_add_func("/control/state_before_answer", test_state_before_answer);
    return g_test_run();
}
