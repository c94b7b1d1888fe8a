/* Throws mutated frames at the real parser, dispatcher and objects: every request with an id is
 * answered, nothing crashes (run it under the address sanitizer). Seeded, so that a failure comes
 * again: FUZZ_SEED and FUZZ_SECONDS change the run. */
#include "control.h"
#include "encoder_choice.h"
#include "events.h"
#include "log.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <gst/gst.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_SECONDS 10

static const char *const corpus[] = {
    "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"helper.info\", \"params\": {}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"helper.ping\"}",
    "{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": \"camera.add\", \"params\": {\"id\": 1, "
    "\"source\": "
    "{\"type\": \"test\"}, \"mode\": {\"width\": 64, \"height\": 64, \"fps\": 5}, \"controls\": "
    "{\"brightness\": 50, \"contrast\": 50, \"saturation\": 50}, \"streams\": [{\"name\": "
    "\"stream1\", \"width\": 64, \"height\": 64, \"fps\": 5, \"bitrate_kbps\": 100, \"gop\": 5}]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": \"camera.add\", \"params\": {\"id\": 2, "
    "\"source\": "
    "{\"type\": \"file\", \"path\": \"/nonexistent/clip.mp4\"}, \"mode\": {\"width\": 64, "
    "\"height\": 64, \"fps\": 5}, \"controls\": {\"brightness\": 50, \"contrast\": 50, "
    "\"saturation\": 50}, \"streams\": [{\"name\": \"a\", \"width\": 64, \"height\": 64, \"fps\": "
    "5, "
    "\"bitrate_kbps\": 100, \"gop\": 5}]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"camera.configure\", \"params\": {\"id\": 1, "
    "\"mode\": {\"width\": 96, \"height\": 64, \"fps\": 6}}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 6, \"method\": \"camera.configure\", \"params\": {\"id\": 1, "
    "\"streams\": [{\"name\": \"stream2\", \"width\": 64, \"height\": 64, \"fps\": 5, "
    "\"bitrate_kbps\": 100, \"gop\": 5}]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"camera.set_controls\", \"params\": {\"id\": "
    "1, "
    "\"brightness\": 60}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 8, \"method\": \"camera.restart\", \"params\": {\"id\": 1}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 9, \"method\": \"camera.remove\", \"params\": {\"id\": 1}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 10, \"method\": \"camera.select\", \"params\": {\"id\": 1}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 11, \"method\": \"snapshot.take\", \"params\": {\"camera\": 1, "
    "\"quality\": 85}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 12, \"method\": \"recorder.start\", \"params\": {\"id\": 1, "
    "\"camera\": 1, \"path\": \"/nonexistent/r.mp4\", \"stream\": \"stream1\", \"encode\": "
    "{\"width\": 64, \"height\": 64, \"fps\": 5, \"bitrate_kbps\": 100}, \"duration_ms\": 1000}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 13, \"method\": \"recorder.stop\", \"params\": {\"id\": 1}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 14, \"method\": \"rtsp.start\", \"params\": {\"address\": "
    "\"127.0.0.1\", \"port\": 0, \"max_connections\": 2, \"realm\": \"camera\", \"basic\": true}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 15, \"method\": \"rtsp.set_users\", \"params\": {\"users\": "
    "[{\"name\": \"a\", \"ha1\": \"0123456789abcdef0123456789abcdef\"}]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 18, \"method\": \"rtsp.set_users\", \"params\": {\"users\": "
    "[{\"name\": \"b\", \"ha1_md5\": \"0123456789abcdef0123456789abcdef\", \"ha1_sha256\": "
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", \"cameras\": [1, 2]}]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 19, \"method\": \"rtsp.set_lockout\", \"params\": "
    "{\"users\": [\"a\"], \"addresses\": [\"10.0.0.1\", \"2001:db8::/64\"]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 20, \"method\": \"rtsp.set_certificate\", \"params\": "
    "{\"certificate_file\": \"/nonexistent/c.pem\", \"key_file\": \"/dev/null\"}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 21, \"method\": \"rtsp.start\", \"params\": {\"address\": "
    "\"127.0.0.1\", \"port\": 0, \"max_connections\": 2, \"realm\": \"camera\", \"basic\": "
    "\"tls\", \"tls_port\": 0, \"certificate_file\": \"/nonexistent/c.pem\"}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 16, \"method\": \"rtsp.kick\", \"params\": {\"user\": \"a\"}}",
    "{\"jsonrpc\": \"2.0\", \"id\": 17, \"method\": \"stats.get\", \"params\": {}}",
    /* Answers to what was never asked. */
    "{\"jsonrpc\": \"2.0\", \"id\": \"h1\", \"result\": {\"recording\": 1, \"camera\": 1, "
    "\"parts\": [{\"path\": \"/nonexistent\", \"duration_ms\": 5}]}}",
    "{\"jsonrpc\": \"2.0\", \"id\": \"h2\", \"error\": {\"code\": -32001, \"message\": "
    "\"no\"}}",
};

static const char *const tokens[] = {
    "null",        "true",
    "-1",          "0",
    "1e308",       "99999999999999999999",
    "\"\"",        "[]",
    "{}",          "[[[",
    "\"",          "\\",
    "\\u0000",     "\xf0\x9f\x93\xb7",
    "\xff",        ",",
    "5.5",         "64",
    "2",           "65536",
    "\"test\"",    "\"v4l2\"",
    "/*",          "'",
    "\"id\": 1, ",
};

typedef struct {
    int fd;
    CamRpc *rpc;
    gboolean closed;
    guint64 sent, answered;
    GByteArray *input;
} Link;

static void on_closed(gpointer data)
{
    ((Link *)data)->closed = TRUE;
}

static CamService *service;

static void on_call(CamRpcCall *call, const char *method, JsonObject *params, gpointer data)
{
    cam_service_handle(call, method, params, service);
}

static void link_open(Link *link)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    *link = (Link){.fd = fds[0], .input = g_byte_array_new()};
    link->rpc = cam_rpc_new(fds[1], on_call, on_closed, link);
}

/* Counts the answers (not the events) that have come. */
static void link_read(Link *link)
{
    guint8 chunk[65536];
    gssize n;

    while ((n = recv(link->fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        g_byte_array_append(link->input, chunk, (guint)n);
    for (;;) {
        guint32 header[2];
        gsize json, binary;

        if (link->input->len < 8)
            return;
        memcpy(header, link->input->data, 8);
        json = GUINT32_FROM_BE(header[0]);
        binary = GUINT32_FROM_BE(header[1]);
        g_assert_cmpuint(json, <=, CAM_RPC_MAX_JSON * 4);
        if (link->input->len < 8 + json + binary)
            return;
        if (!g_strstr_len((char *)link->input->data + 8, (gssize)json, "\"method\""))
            link->answered++;
        g_byte_array_remove_range(link->input, 0, (guint)(8 + json + binary));
    }
}

static void turn(Link *link)
{
    for (int i = 0; i < 20 && g_main_context_iteration(NULL, FALSE); i++)
        continue;
    link_read(link);
}

static void link_close(Link *link)
{
    cam_rpc_free(link->rpc);
    close(link->fd);
    g_byte_array_unref(link->input);
}

static void mutate(GRand *rand, GString *text)
{
    int changes = g_rand_int_range(rand, 0, 4);

    for (int i = 0; i < changes && text->len > 0; i++) {
        gssize at = g_rand_int_range(rand, 0, (gint)text->len);
        gssize some = g_rand_int_range(rand, 1, 20);
        const char *token = tokens[g_rand_int_range(rand, 0, G_N_ELEMENTS(tokens))];

        switch (g_rand_int_range(rand, 0, 5)) {
        case 0:
            text->str[at] = (char)g_rand_int_range(rand, 0, 256);
            break;
        case 1:
            g_string_erase(text, at, MIN((gssize)text->len - at, some));
            break;
        case 2:
            g_string_insert(text, at, token);
            break;
        case 3: {
            /* A value becomes another. */
            const char *colon = strstr(text->str + at, ": ");

            if (colon) {
                gssize value = colon - text->str + 2;
                gsize length = strcspn(text->str + value, ",}]");

                g_string_erase(text, value, (gssize)length);
                g_string_insert(text, value, token);
            }
            break;
        }
        default:
            g_string_truncate(text, (gsize)at);
            break;
        }
    }
}

/* Never blocks: the other end of the socket is this very thread. */
static void send_all(Link *link, const void *data, gsize size)
{
    gsize done = 0;

    while (done < size && !link->closed) {
        gssize n =
            send(link->fd, (const char *)data + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0)
            done += (gsize)n;
        else
            turn(link);
    }
}

static void send_frame(Link *link, const char *text, gsize length)
{
    guint32 header[2] = {GUINT32_TO_BE((guint32)length), 0};

    send_all(link, header, sizeof(header));
    send_all(link, text, length);
}

static gboolean expects_answer(const GString *text)
{
    CamRequest request;
    const char *message;
    int code = cam_request_parse(text->str, text->len, &request, &message);
    gboolean answer = code != 0 || (request.id && !request.is_answer);

    cam_request_clear(&request);
    return answer;
}

static void wait_for_answers(Link *link)
{
    gint64 deadline = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;

    while (link->answered < link->sent && g_get_monotonic_time() < deadline) {
        turn(link);
        g_usleep(1000);
    }
    g_assert_cmpuint(link->answered, ==, link->sent);
}

static void fuzz_requests(GRand *rand, gint64 until, guint64 *total)
{
    Link link;

    link_open(&link);
    for (guint64 i = 0; g_get_monotonic_time() < until; i++) {
        g_autoptr(GString) text =
            g_string_new(corpus[g_rand_int_range(rand, 0, G_N_ELEMENTS(corpus))]);

        mutate(rand, text);
        if (text->len == 0)
            continue;
        link.sent += expects_answer(text);
        send_frame(&link, text->str, text->len);
        (*total)++;
        /* Within what the protocol allows to be unanswered. */
        if (i % 32 == 31)
            wait_for_answers(&link);
        turn(&link);
        g_assert_false(link.closed);
    }
    wait_for_answers(&link);
    link_close(&link);
}

/* Bytes that are no frames at all: an answer and the end, or an end only. */
static void fuzz_framing(GRand *rand)
{
    for (int i = 0; i < 200; i++) {
        guint8 noise[512];
        int size = g_rand_int_range(rand, 1, sizeof(noise));
        Link link;

        for (int k = 0; k < size; k++)
            noise[k] = (guint8)g_rand_int_range(rand, 0, 256);
        /* Half of them with a length that could be. */
        if (i % 2 && size > 8)
            memcpy(noise, "\0\0\0\x20\0\0\0\0", 8);
        link_open(&link);
        send_all(&link, noise, (gsize)size);
        turn(&link);
        link_close(&link);
    }
}

static void test_fuzz(void)
{
    const char *seed = g_getenv("FUZZ_SEED"), *seconds = g_getenv("FUZZ_SECONDS");
    guint32 seed_value = seed ? (guint32)g_ascii_strtoull(seed, NULL, 10) : 20240601;
    int duration = seconds ? (int)g_ascii_strtoull(seconds, NULL, 10) : DEFAULT_SECONDS;
    GRand *rand = g_rand_new_with_seed(seed_value);
    guint64 total = 0;

    service = cam_service_new();
    fuzz_framing(rand);
    fuzz_requests(rand, g_get_monotonic_time() + duration * G_USEC_PER_SEC, &total);
    g_test_message("seed %u: %" G_GUINT64_FORMAT " frames", seed_value, total);
    cam_service_shut_down(service);
    while (cam_service_recorders(service) > 0)
        g_main_context_iteration(NULL, TRUE);
    cam_service_free(service);
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    cam_log_set_level("error");
    cam_encoder_choice_probe();
    g_test_add_func("/fuzz/control", test_fuzz);
    return g_test_run();
}
