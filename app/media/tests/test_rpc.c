#include "rpc.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_frame_scan(void)
{
    gsize length = 0;

    g_assert_cmpint(cam_frame_scan((const guint8 *)"", 0, &length), ==, CAM_FRAME_INCOMPLETE);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\0\0\2\0\0\0", 7, &length), ==,
                    CAM_FRAME_INCOMPLETE);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\0\0\2\0\0\0\0{", 9, &length), ==,
                    CAM_FRAME_INCOMPLETE);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\0\0\2\0\0\0\0{}", 10, &length), ==,
                    CAM_FRAME_COMPLETE);
    g_assert_cmpuint(length, ==, 2);
    /* Nothing, too much, and a binary part from the server. */
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\0\0\0\0\0\0\0", 8, &length), ==,
                    CAM_FRAME_BAD);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\4\0\1\0\0\0\0", 8, &length), ==,
                    CAM_FRAME_BAD);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\4\0\0\0\0\0\0", 8, &length), ==,
                    CAM_FRAME_INCOMPLETE);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\377\377\377\377\0\0\0\0", 8, &length), ==,
                    CAM_FRAME_BAD);
    g_assert_cmpint(cam_frame_scan((const guint8 *)"\0\0\0\2\0\0\0\1{}", 10, &length), ==,
                    CAM_FRAME_BAD);
}

static int parse(const char *text)
{
    CamRequest request;
    const char *message = NULL;
    int code = cam_request_parse(text, strlen(text), &request, &message);

    cam_request_clear(&request);
    return code;
}

static void test_requests(void)
{
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"m\"}"), ==, 0);
    g_assert_cmpint(
        parse("{\"jsonrpc\": \"2.0\", \"id\": \"a\", \"method\": \"m\", \"params\": {}}"), ==, 0);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"method\": \"m\"}"), ==, 0);
    g_assert_cmpint(parse(""), ==, CAM_RPC_PARSE_ERROR);
    g_assert_cmpint(parse("   "), ==, CAM_RPC_PARSE_ERROR);
    g_assert_cmpint(parse("{"), ==, CAM_RPC_PARSE_ERROR);
    g_assert_cmpint(parse("{\"a\": }"), ==, CAM_RPC_PARSE_ERROR);
    g_assert_cmpint(parse("{\"a\": \"\xff\"}"), ==, CAM_RPC_PARSE_ERROR);
    g_assert_cmpint(parse("/* no */ {}"), ==, CAM_RPC_PARSE_ERROR);
    g_assert_cmpint(parse("[]"), ==, CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("1"), ==, CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{}"), ==, CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"m\"}"), ==,
                    CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": 1}"), ==, CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"m\"}"), ==,
                    CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"m\"}"), ==,
                    CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": 1}"), ==,
                    CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"m\", \"extra\": 1}"), ==,
                    CAM_RPC_INVALID_REQUEST);
    g_assert_cmpint(parse("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"m\", \"params\": []}"),
                    ==, CAM_RPC_INVALID_PARAMS);
}

static void test_depth(void)
{
    g_autoptr(GString) deep = g_string_new(NULL);

    for (int i = 0; i < 200000; i++)
        g_string_append_c(deep, '[');
    g_assert_cmpint(parse(deep->str), ==, CAM_RPC_PARSE_ERROR);
    /* Brackets in a string are no depth. */
    g_string_assign(deep, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"");
    for (int i = 0; i < 1000; i++)
        g_string_append(deep, "[\\\"");
    g_string_append(deep, "\"}");
    g_assert_cmpint(parse(deep->str), ==, 0);
}

/* A peer on the other end of a socket pair. */
typedef struct {
    int fd;
    CamRpc *rpc;
    gboolean closed;
    GPtrArray *held; /* calls that are not answered */
} Peer;

static void on_call(CamRpcCall *call, const char *method, JsonObject *params, gpointer user_data)
{
    Peer *peer = user_data;

    if (g_str_equal(method, "hold")) {
        g_ptr_array_add(peer->held, call);
    } else if (g_str_equal(method, "helper.ping")) {
        cam_rpc_call_reply(call, json_object_new());
    } else if (g_str_equal(method, "picture")) {
        GBytes *bytes = g_bytes_new_static("JPEG", 4);

        cam_rpc_call_reply_binary(call, json_object_new(), bytes);
        g_bytes_unref(bytes);
    } else {
        cam_rpc_call_fail(call, CAM_RPC_METHOD_NOT_FOUND, "no", NULL);
    }
}

static void on_closed(gpointer user_data)
{
    ((Peer *)user_data)->closed = TRUE;
}

static void peer_init(Peer *peer)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    *peer = (Peer){.fd = fds[0], .held = g_ptr_array_new()};
    peer->rpc = cam_rpc_new(fds[1], on_call, on_closed, peer);
}

static void peer_clear(Peer *peer)
{
    for (guint i = 0; i < peer->held->len; i++)
        cam_rpc_call_reply(peer->held->pdata[i], json_object_new());
    g_ptr_array_unref(peer->held);
    cam_rpc_free(peer->rpc);
    close(peer->fd);
}

static void peer_send(Peer *peer, const char *text)
{
    guint32 header[2] = {GUINT32_TO_BE((guint32)strlen(text)), 0};

    g_assert_cmpint(write(peer->fd, header, sizeof(header)), ==, sizeof(header));
    g_assert_cmpint(write(peer->fd, text, strlen(text)), ==, (gssize)strlen(text));
}

static void spin(void)
{
    for (int i = 0; i < 200; i++)
        g_main_context_iteration(NULL, FALSE);
}

/* The next frame's JSON; its binary part's length in *BINARY. */
static char *peer_receive(Peer *peer, guint32 *binary)
{
    guint32 header[2];
    char *text;

    spin();
    g_assert_cmpint(recv(peer->fd, header, sizeof(header), MSG_DONTWAIT | MSG_WAITALL), ==,
                    sizeof(header));
    text = g_malloc0(GUINT32_FROM_BE(header[0]) + 1);
    g_assert_cmpint(recv(peer->fd, text, GUINT32_FROM_BE(header[0]), MSG_DONTWAIT), ==,
                    GUINT32_FROM_BE(header[0]));
    *binary = GUINT32_FROM_BE(header[1]);
    return text;
}

static void expect(Peer *peer, const char *part)
{
    guint32 binary;
    g_autofree char *text = peer_receive(peer, &binary);

    g_assert_nonnull(strstr(text, part));
}

static void test_dialogue(void)
{
    Peer peer;
    char data[4];
    guint32 binary;
    g_autofree char *text = NULL;

    peer_init(&peer);
    peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"nothing\"}");
    expect(&peer, "-32601");
    peer_send(&peer, "nonsense");
    expect(&peer, "-32700");
    peer_send(&peer, "{\"id\": \"x\"}");
    expect(&peer, "\"id\":\"x\"");
    peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"picture\"}");
    text = peer_receive(&peer, &binary);
    g_assert_cmpuint(binary, ==, 4);
    g_assert_cmpint(recv(peer.fd, data, 4, MSG_DONTWAIT), ==, 4);
    g_assert_cmpmem(data, 4, "JPEG", 4);
    /* A notification is not answered. */
    peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"method\": \"nothing\"}");
    spin();
    g_assert_cmpint(recv(peer.fd, data, 1, MSG_DONTWAIT), ==, -1);
    g_assert_false(peer.closed);
    peer_clear(&peer);
}

static void test_pieces(void)
{
    static const char text[] = "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"a\"}";
    char frame[8 + sizeof(text) - 1] = {0, 0, 0, sizeof(text) - 1};
    Peer peer;

    memcpy(frame + 8, text, sizeof(text) - 1);
    peer_init(&peer);
    for (gsize i = 0; i < sizeof(frame); i++) {
        g_assert_cmpint(write(peer.fd, frame + i, 1), ==, 1);
        g_main_context_iteration(NULL, FALSE);
    }
    expect(&peer, "\"id\":7");
    peer_clear(&peer);
}

static void test_too_many(void)
{
    Peer peer;

    peer_init(&peer);
    for (int i = 0; i < 64; i++)
        peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"hold\"}");
    spin();
    g_assert_cmpuint(peer.held->len, ==, 64);
    peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"id\": 65, \"method\": \"hold\"}");
    expect(&peer, "-32006");
    /* Whether the helper lives can be asked always. */
    peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"id\": 66, \"method\": \"helper.ping\"}");
    expect(&peer, "\"id\":66,\"result\"");
    peer_clear(&peer);
}

static void test_bad_length_closes(void)
{
    Peer peer;
    char byte;

    peer_init(&peer);
    g_assert_cmpint(write(peer.fd, "\377\377\377\377\0\0\0\0rest", 12), ==, 12);
    expect(&peer, "-32600");
    spin();
    g_assert_true(peer.closed);
    g_assert_cmpint(recv(peer.fd, &byte, 1, MSG_DONTWAIT), ==, 0);
    peer_clear(&peer);
}

static void test_peer_gone(void)
{
    Peer peer;

    peer_init(&peer);
    peer_send(&peer, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"hold\"}");
    spin();
    shutdown(peer.fd, SHUT_RDWR);
    spin();
    g_assert_true(peer.closed);
    /* The answer to a call of a peer that is gone goes nowhere. */
    peer_clear(&peer);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rpc/frame-scan", test_frame_scan);
    g_test_add_func("/rpc/requests", test_requests);
    g_test_add_func("/rpc/depth", test_depth);
    g_test_add_func("/rpc/dialogue", test_dialogue);
    g_test_add_func("/rpc/pieces", test_pieces);
    g_test_add_func("/rpc/too-many", test_too_many);
    g_test_add_func("/rpc/bad-length", test_bad_length_closes);
    g_test_add_func("/rpc/peer-gone", test_peer_gone);
    return g_test_run();
}
