/* Questions to the server: right, wrong, garbled, late and missing answers. */
#include "ask.h"
#include "log.h"
#include "rpc.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The server's end of a socket pair. */
typedef struct {
    int fd;
    CamRpc *rpc;
} Server;

static void on_call(CamRpcCall *call, const char *method, JsonObject *params, gpointer user_data)
{
    cam_rpc_call_reply(call, json_object_new());
}

static void on_closed(gpointer user_data)
{
}

static void send_question(const char *id, const char *method, JsonObject *params,
                          gpointer user_data)
{
    cam_rpc_ask(((Server *)user_data)->rpc, id, method, params);
}

static void server_init(Server *server)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    server->fd = fds[0];
    server->rpc = cam_rpc_new(fds[1], on_call, on_closed, server);
    cam_asks_set_sender(send_question, server);
}

static void server_clear(Server *server)
{
    cam_asks_set_sender(NULL, NULL);
    cam_rpc_free(server->rpc);
    close(server->fd);
}

static void server_send(Server *server, const char *text)
{
    guint32 header[2] = {GUINT32_TO_BE((guint32)strlen(text)), 0};

    g_assert_cmpint(write(server->fd, header, sizeof(header)), ==, sizeof(header));
    g_assert_cmpint(write(server->fd, text, strlen(text)), ==, (gssize)strlen(text));
}

/* The number in the id of the next question. */
static guint64 receive_question(Server *server)
{
    guint32 header[2];
    g_autofree char *text = NULL;
    const char *id;

    while (recv(server->fd, header, sizeof(header), MSG_DONTWAIT) != sizeof(header))
        g_main_context_iteration(NULL, FALSE);
    text = g_malloc0(GUINT32_FROM_BE(header[0]) + 1);
    g_assert_cmpint(recv(server->fd, text, GUINT32_FROM_BE(header[0]), 0), ==,
                    GUINT32_FROM_BE(header[0]));
    g_assert_nonnull(strstr(text, "\"method\":\"m\""));
    id = strstr(text, "\"id\":\"h");
    g_assert_nonnull(id);
    return g_ascii_strtoull(id + strlen("\"id\":\"h"), NULL, 10);
}

typedef struct {
    GThread *thread;
    JsonObject *result;
    int code;
    gint done;
} Asker;

static gpointer ask(gpointer data)
{
    Asker *asker = data;

    asker->result = cam_ask("m", json_object_new(), &asker->code);
    g_atomic_int_set(&asker->done, 1);
    return NULL;
}

static void asker_start(Asker *asker)
{
    *asker = (Asker){0};
    asker->thread = g_thread_new("asker", ask, asker);
}

static void asker_end(Asker *asker)
{
    while (!g_atomic_int_get(&asker->done))
        g_main_context_iteration(NULL, FALSE);
    g_thread_join(asker->thread);
}

static void answer(Server *server, guint64 id, const char *rest)
{
    g_autofree char *text =
        g_strdup_printf("{\"jsonrpc\": \"2.0\", \"id\": \"h%" G_GUINT64_FORMAT "\", %s}", id, rest);

    server_send(server, text);
}

static void test_answers(void)
{
    Server server;
    Asker asker;

    server_init(&server);
    asker_start(&asker);
    answer(&server, receive_question(&server), "\"result\": {\"n\": 5}");
    asker_end(&asker);
    g_assert_cmpint(json_object_get_int_member(asker.result, "n"), ==, 5);
    json_object_unref(asker.result);
    asker_start(&asker);
    answer(&server, receive_question(&server),
           "\"error\": {\"code\": -32001, \"message\": \"no\"}");
    asker_end(&asker);
    g_assert_null(asker.result);
    g_assert_cmpint(asker.code, ==, CAM_RPC_NOT_FOUND);
    server_clear(&server);
}

/* None of it may reach who waits, be answered, or end the connection. */
static void test_garbage(void)
{
    static const char *const garbage[] = {
        "{\"jsonrpc\": \"2.0\", \"id\": \"x\", \"result\": {}}",
        "{\"jsonrpc\": \"2.0\", \"id\": \"h\", \"result\": {}}",
        "{\"jsonrpc\": \"2.0\", \"id\": \"h99999999999999999999999\", \"result\": {}}",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}",
        "{\"jsonrpc\": \"2.0\", \"id\": null, \"error\": null}",
        "{\"jsonrpc\": \"2.0\", \"error\": {\"code\": 1}}",
        "{\"result\": 1}",
    };
    static const char *const bad[] = {
        "\"result\": 1",
        "\"result\": null",
        "\"result\": {}, \"error\": {\"code\": 1, \"message\": \"\"}",
        "\"error\": {\"code\": \"1\"}",
        "\"error\": []",
        "\"result\": {}, \"more\": 1",
    };
    Server server;
    Asker asker;
    guint64 id;
    char left;

    server_init(&server);
    asker_start(&asker);
    id = receive_question(&server);
    for (guint i = 0; i < G_N_ELEMENTS(garbage); i++)
        server_send(&server, garbage[i]);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        answer(&server, id, bad[i]);
    for (int i = 0; i < 100; i++)
        g_main_context_iteration(NULL, FALSE);
    g_assert_false(g_atomic_int_get(&asker.done));
    g_assert_cmpint(recv(server.fd, &left, 1, MSG_DONTWAIT), ==, -1);
    answer(&server, id, "\"result\": {}");
    asker_end(&asker);
    g_assert_nonnull(asker.result);
    json_object_unref(asker.result);
    server_clear(&server);
}

static void test_late(void)
{
    Server server;
    Asker asker;
    guint64 id;

    server_init(&server);
    asker_start(&asker);
    id = receive_question(&server);
    asker_end(&asker);
    g_assert_null(asker.result);
    g_assert_cmpint(asker.code, ==, CAM_RPC_BUSY);
    answer(&server, id, "\"result\": {}");
    asker_start(&asker);
    g_assert_cmpuint(receive_question(&server), !=, id);
    answer(&server, id + 1, "\"result\": {}");
    asker_end(&asker);
    g_assert_nonnull(asker.result);
    json_object_unref(asker.result);
    server_clear(&server);
}

static void test_too_many_and_gone(void)
{
    Asker askers[CAM_ASK_MAX], extra;
    Server server;

    server_init(&server);
    for (int i = 0; i < CAM_ASK_MAX; i++) {
        asker_start(&askers[i]);
        receive_question(&server);
    }
    asker_start(&extra);
    asker_end(&extra);
    g_assert_null(extra.result);
    g_assert_cmpint(extra.code, ==, CAM_RPC_BUSY);
    cam_asks_set_sender(NULL, NULL);
    for (int i = 0; i < CAM_ASK_MAX; i++) {
        asker_end(&askers[i]);
        g_assert_cmpint(askers[i].code, ==, CAM_RPC_INTERNAL);
    }
    asker_start(&extra);
    asker_end(&extra);
    g_assert_cmpint(extra.code, ==, CAM_RPC_INTERNAL);
    server_clear(&server);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    cam_log_set_level("error");
    g_test_add_func("/ask/answers", test_answers);
    g_test_add_func("/ask/garbage", test_garbage);
    g_test_add_func("/ask/late", test_late);
    g_test_add_func("/ask/too_many_and_gone", test_too_many_and_gone);
    return g_test_run();
}
