#include "rpc.h"
#include "ask.h"
#include "log.h"

#include <errno.h>
#include <glib-unix.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_UNANSWERED 64
/* Is answered all the same: it asks whether the helper lives. */
#define ALWAYS_ANSWERED "helper.ping"
#define READ_CHUNK (64 * 1024)
/* While the peer does not read this much of its answers, its requests wait in the socket. */
#define OUTPUT_HIGH_WATER (8 * 1024 * 1024)
/* A peer that reads nothing at all while events pile up is as good as gone. */
#define OUTPUT_LIMIT (64 * 1024 * 1024)

struct _CamRpc {
    int refs;
    int fd; /* -1 once closed */
    CamRpcHandler handler;
    CamRpcClosed closed;
    gpointer user_data;
    GByteArray *input;
    GQueue output; /* GBytes */
    gsize output_offset;
    gsize output_bytes;
    guint read_watch, write_watch;
    int unanswered;
    gboolean refusing; /* a frame could not be skipped: flush, then close */
};

struct _CamRpcCall {
    CamRpc *rpc;
    JsonNode *id; /* NULL for a notification */
};

static gboolean on_readable(int fd, GIOCondition condition, gpointer user_data);
static gboolean on_writable(int fd, GIOCondition condition, gpointer user_data);

static CamRpc *rpc_ref(CamRpc *rpc)
{
    rpc->refs++;
    return rpc;
}

static void rpc_unref(CamRpc *rpc)
{
    if (--rpc->refs > 0)
        return;
    g_byte_array_unref(rpc->input);
    g_queue_clear_full(&rpc->output, (GDestroyNotify)g_bytes_unref);
    g_free(rpc);
}

CamRpc *cam_rpc_new(int fd, CamRpcHandler handler, CamRpcClosed closed, gpointer user_data)
{
    CamRpc *rpc = g_new0(CamRpc, 1);

    rpc->refs = 1;
    rpc->fd = fd;
    rpc->handler = handler;
    rpc->closed = closed;
    rpc->user_data = user_data;
    rpc->input = g_byte_array_new();
    g_queue_init(&rpc->output);
    g_unix_set_fd_nonblocking(fd, TRUE, NULL);
    rpc->read_watch = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, rpc);
    return rpc;
}

static void close_socket(CamRpc *rpc)
{
    if (rpc->fd < 0)
        return;
    g_clear_handle_id(&rpc->read_watch, g_source_remove);
    g_clear_handle_id(&rpc->write_watch, g_source_remove);
    close(rpc->fd);
    rpc->fd = -1;
    g_queue_clear_full(&rpc->output, (GDestroyNotify)g_bytes_unref);
    rpc->output_bytes = 0;
}

void cam_rpc_free(CamRpc *rpc)
{
    close_socket(rpc);
    rpc->handler = NULL;
    rpc->closed = NULL;
    rpc_unref(rpc);
}

static void peer_gone(CamRpc *rpc)
{
    CamRpcClosed closed = rpc->closed;

    close_socket(rpc);
    rpc->closed = NULL;
    if (closed)
        closed(rpc->user_data);
}

/* FALSE when the socket is dead. */
static gboolean write_some(CamRpc *rpc)
{
    GBytes *head;

    while ((head = g_queue_peek_head(&rpc->output))) {
        gsize size;
        const guint8 *data = g_bytes_get_data(head, &size);
        gssize n;

        n = send(rpc->fd, data + rpc->output_offset, size - rpc->output_offset, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        rpc->output_offset += (gsize)n;
        rpc->output_bytes -= (gsize)n;
        if (rpc->output_offset == size) {
            g_bytes_unref(g_queue_pop_head(&rpc->output));
            rpc->output_offset = 0;
        }
    }
    return TRUE;
}

static void update_watches(CamRpc *rpc)
{
    gboolean want_read = !rpc->refusing && rpc->output_bytes < OUTPUT_HIGH_WATER;

    if (rpc->output_bytes > 0 && !rpc->write_watch)
        rpc->write_watch = g_unix_fd_add(rpc->fd, G_IO_OUT | G_IO_HUP | G_IO_ERR, on_writable, rpc);
    if (want_read && !rpc->read_watch)
        rpc->read_watch = g_unix_fd_add(rpc->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, rpc);
    else if (!want_read)
        g_clear_handle_id(&rpc->read_watch, g_source_remove);
}

static void send_frame(CamRpc *rpc, const char *text, gsize length, GBytes *binary)
{
    GBytes *frame;

    if (rpc->fd < 0)
        return;
    frame = cam_frame_build(text, length, binary);
    rpc->output_bytes += g_bytes_get_size(frame);
    g_queue_push_tail(&rpc->output, frame);
    /* A dead socket shows up as end of file in the read watch, or here in the write watch. */
    if (!write_some(rpc) || rpc->output_bytes > OUTPUT_LIMIT)
        shutdown(rpc->fd, SHUT_RDWR);
    update_watches(rpc);
}

void cam_rpc_notify(CamRpc *rpc, const char *method, JsonObject *params)
{
    gsize length;
    g_autofree char *text = cam_notification_text(method, params, &length);

    send_frame(rpc, text, length, NULL);
    json_object_unref(params);
}

void cam_rpc_ask(CamRpc *rpc, const char *id, const char *method, JsonObject *params)
{
    gsize length;
    g_autofree char *text = cam_request_text(id, method, params, &length);

    send_frame(rpc, text, length, NULL);
}

void cam_rpc_flush(CamRpc *rpc, int timeout_ms)
{
    gint64 deadline = g_get_monotonic_time() + timeout_ms * 1000;

    while (rpc->fd >= 0 && rpc->output_bytes > 0) {
        gint64 left = (deadline - g_get_monotonic_time()) / 1000;
        struct pollfd poll_fd = {.fd = rpc->fd, .events = POLLOUT};

        if (left <= 0 || poll(&poll_fd, 1, (int)left) <= 0 || !write_some(rpc))
            break;
    }
}

static CamRpcCall *call_new(CamRpc *rpc, JsonNode *id)
{
    CamRpcCall *call = g_new(CamRpcCall, 1);

    call->rpc = rpc_ref(rpc);
    call->id = id ? json_node_copy(id) : NULL;
    if (id)
        rpc->unanswered++;
    return call;
}

static void call_free(CamRpcCall *call)
{
    if (call->id) {
        call->rpc->unanswered--;
        json_node_unref(call->id);
    }
    rpc_unref(call->rpc);
    g_free(call);
}

void cam_rpc_call_reply_binary(CamRpcCall *call, JsonObject *result, GBytes *binary)
{
    if (call->id) {
        gsize length;
        g_autofree char *text = cam_response_text(call->id, result, &length);

        send_frame(call->rpc, text, length, binary);
    }
    json_object_unref(result);
    call_free(call);
}

void cam_rpc_call_reply(CamRpcCall *call, JsonObject *result)
{
    cam_rpc_call_reply_binary(call, result, NULL);
}

static void send_error(CamRpc *rpc, JsonNode *id, int code, const char *message, JsonObject *data)
{
    gsize length;
    g_autofree char *text = cam_error_text(id, code, message, data, &length);

    send_frame(rpc, text, length, NULL);
}

void cam_rpc_call_fail(CamRpcCall *call, CamRpcCode code, const char *message, JsonObject *data)
{
    if (call->id)
        send_error(call->rpc, call->id, code, message, data);
    g_clear_pointer(&data, json_object_unref);
    call_free(call);
}

static void take_answer(const CamRequest *answer)
{
    const char *id = answer->id ? json_node_get_string(answer->id) : NULL;

    if (!id || !cam_asks_answered(id, answer->result, answer->code))
        cam_log(CAM_LOG_WARN, "control", "an answer to nothing that was asked, or too late");
}

static void dispatch(CamRpc *rpc, const char *text, gsize length)
{
    CamRequest request;
    const char *message;
    int code = cam_request_parse(text, length, &request, &message);
    gboolean is_call = code == 0 && request.id;

    if (code != 0)
        send_error(rpc, request.id, code, message, NULL);
    else if (request.is_answer)
        take_answer(&request);
    else if (is_call && rpc->unanswered >= MAX_UNANSWERED &&
             !g_str_equal(request.method, ALWAYS_ANSWERED))
        send_error(rpc, request.id, CAM_RPC_BUSY, "too many unanswered requests", NULL);
    else
        rpc->handler(call_new(rpc, request.id), request.method, request.params, rpc->user_data);
    cam_request_clear(&request);
}

/* Dispatches every whole frame of the input. The handler may free RPC: the caller holds a ref. */
static void process_input(CamRpc *rpc)
{
    gsize used = 0, length;
    CamFrameState state = CAM_FRAME_INCOMPLETE;

    while (rpc->fd >= 0 && rpc->handler) {
        const guint8 *data = rpc->input->data + used;

        state = cam_frame_scan(data, rpc->input->len - used, &length);
        if (state != CAM_FRAME_COMPLETE)
            break;
        dispatch(rpc, (const char *)data + CAM_RPC_HEADER_SIZE, length);
        used += CAM_RPC_HEADER_SIZE + length;
    }
    if (state == CAM_FRAME_BAD && rpc->fd >= 0) {
        cam_log(CAM_LOG_ERROR, "control", "a frame with impossible lengths came; closing");
        rpc->refusing = TRUE;
        send_error(rpc, NULL, CAM_RPC_INVALID_REQUEST, "frame length out of range", NULL);
        used = rpc->input->len;
    }
    if (used)
        g_byte_array_remove_range(rpc->input, 0, (guint)used);
}

static gboolean on_readable(int fd, GIOCondition condition, gpointer user_data)
{
    CamRpc *rpc = rpc_ref(user_data);
    guint watch = rpc->read_watch;
    guint old = rpc->input->len;
    gboolean keep;
    gssize n;

    g_byte_array_set_size(rpc->input, old + READ_CHUNK);
    n = recv(fd, rpc->input->data + old, READ_CHUNK, 0);
    g_byte_array_set_size(rpc->input, old + (n > 0 ? (guint)n : 0));
    if (n > 0)
        process_input(rpc);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        peer_gone(rpc);
    else if (rpc->refusing && rpc->output_bytes == 0)
        peer_gone(rpc);
    /* A handler may have removed this watch (and even added another); then the source is gone. */
    keep = rpc->read_watch == watch;
    rpc_unref(rpc);
    return keep ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static gboolean on_writable(int fd, GIOCondition condition, gpointer user_data)
{
    CamRpc *rpc = user_data;
    gboolean alive = write_some(rpc) && !(condition & (G_IO_HUP | G_IO_ERR));

    if (!alive || (rpc->refusing && rpc->output_bytes == 0)) {
        rpc->write_watch = 0;
        peer_gone(rpc);
        return G_SOURCE_REMOVE;
    }
    if (rpc->output_bytes > 0)
        return G_SOURCE_CONTINUE;
    rpc->write_watch = 0;
    update_watches(rpc);
    return G_SOURCE_REMOVE;
}
