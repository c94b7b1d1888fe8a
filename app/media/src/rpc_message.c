#include "rpc_message.h"

#include <string.h>

static guint32 read_be32(const guint8 *data)
{
    return (guint32)data[0] << 24 | (guint32)data[1] << 16 | (guint32)data[2] << 8 | data[3];
}

static void append_be32(GByteArray *out, guint32 value)
{
    guint32 be = GUINT32_TO_BE(value);

    g_byte_array_append(out, (const guint8 *)&be, sizeof(be));
}

CamFrameState cam_frame_scan(const guint8 *data, gsize length, gsize *json_length)
{
    guint32 json, binary;

    if (length < CAM_RPC_HEADER_SIZE)
        return CAM_FRAME_INCOMPLETE;
    json = read_be32(data);
    binary = read_be32(data + 4);
    if (json < 1 || json > CAM_RPC_MAX_JSON || binary != 0)
        return CAM_FRAME_BAD;
    if (length - CAM_RPC_HEADER_SIZE < json)
        return CAM_FRAME_INCOMPLETE;
    *json_length = json;
    return CAM_FRAME_COMPLETE;
}

GBytes *cam_frame_build(const char *text, gsize length, GBytes *binary)
{
    GByteArray *out;
    gsize binary_length = binary ? g_bytes_get_size(binary) : 0;

    out = g_byte_array_sized_new((guint)(CAM_RPC_HEADER_SIZE + length + binary_length));
    append_be32(out, (guint32)length);
    append_be32(out, (guint32)binary_length);
    g_byte_array_append(out, (const guint8 *)text, (guint)length);
    if (binary_length)
        g_byte_array_append(out, g_bytes_get_data(binary, NULL), (guint)binary_length);
    return g_byte_array_free_to_bytes(out);
}

/* The JSON parser recurses per level; a quarter megabyte of brackets would exhaust the stack. */
static gboolean depth_is_sane(const char *text, gsize length)
{
    int depth = 0;
    gboolean in_string = FALSE;

    for (gsize i = 0; i < length; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = FALSE;
        } else if (c == '"') {
            in_string = TRUE;
        } else if (c == '{' || c == '[') {
            if (++depth > CAM_RPC_MAX_DEPTH)
                return FALSE;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == '/' || c == '\'' || c == '#') {
            /* The parser takes comments and single quotes, JSON does not; and inside them this
             * count could be fooled. */
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean id_is_valid(JsonNode *id)
{
    GType type;

    if (!JSON_NODE_HOLDS_VALUE(id))
        return FALSE;
    type = json_node_get_value_type(id);
    return type == G_TYPE_INT64 ||
           (type == G_TYPE_STRING && strlen(json_node_get_string(id)) <= 128);
}

static gboolean holds_string(JsonNode *node)
{
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING;
}

static gboolean holds_int(JsonNode *node)
{
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64;
}

/* What has a result or an error and no method is an answer, good or bad. */
static void check_answer(CamRequest *answer, JsonObject *object)
{
    JsonNode *version = json_object_get_member(object, "jsonrpc");
    JsonNode *id = json_object_get_member(object, "id");
    JsonNode *result = json_object_get_member(object, "result");
    JsonNode *error = json_object_get_member(object, "error");
    JsonNode *code;

    if (!holds_string(version) || !g_str_equal(json_node_get_string(version), "2.0") ||
        !holds_string(id) || !result == !error || json_object_get_size(object) != 3)
        return;
    if (result && JSON_NODE_HOLDS_OBJECT(result)) {
        answer->result = json_node_get_object(result);
        answer->id = id;
    } else if (error && JSON_NODE_HOLDS_OBJECT(error)) {
        code = json_object_get_member(json_node_get_object(error), "code");
        if (!holds_int(code))
            return;
        answer->code = (int)CLAMP(json_node_get_int(code), G_MININT, G_MAXINT);
        answer->id = id;
    }
}

static int check_request(CamRequest *request, const char **message)
{
    JsonObject *object;
    JsonNode *version, *method, *params, *id;
    guint known;

    *message = "not a JSON-RPC 2.0 request object";
    if (!JSON_NODE_HOLDS_OBJECT(request->root))
        return CAM_RPC_INVALID_REQUEST;
    object = json_node_get_object(request->root);
    version = json_object_get_member(object, "jsonrpc");
    method = json_object_get_member(object, "method");
    params = json_object_get_member(object, "params");
    id = json_object_get_member(object, "id");
    known = !!version + !!method + !!params + !!id;
    if (!method &&
        (json_object_has_member(object, "result") || json_object_has_member(object, "error"))) {
        request->is_answer = TRUE;
        check_answer(request, object);
        return 0;
    }
    if (id && !id_is_valid(id))
        return CAM_RPC_INVALID_REQUEST;
    request->id = id;
    if (!holds_string(version) || !g_str_equal(json_node_get_string(version), "2.0") ||
        !holds_string(method) || json_object_get_size(object) != known)
        return CAM_RPC_INVALID_REQUEST;
    request->method = json_node_get_string(method);
    if (params) {
        if (!JSON_NODE_HOLDS_OBJECT(params)) {
            *message = "params must be an object";
            return CAM_RPC_INVALID_PARAMS;
        }
        request->params = json_node_get_object(params);
    }
    return 0;
}

int cam_request_parse(const char *text, gsize length, CamRequest *request, const char **message)
{
    g_autoptr(JsonParser) parser = NULL;

    *request = (CamRequest){0};
    *message = "not valid JSON";
    /* g_utf8_validate() with a length also refuses embedded NUL bytes. */
    if (!g_utf8_validate(text, (gssize)length, NULL) || !depth_is_sane(text, length))
        return CAM_RPC_PARSE_ERROR;
    parser = json_parser_new_immutable();
    if (!json_parser_load_from_data(parser, text, (gssize)length, NULL))
        return CAM_RPC_PARSE_ERROR;
    request->root = json_parser_steal_root(parser);
    if (!request->root)
        return CAM_RPC_PARSE_ERROR;
    return check_request(request, message);
}

void cam_request_clear(CamRequest *request)
{
    g_clear_pointer(&request->root, json_node_unref);
    request->id = NULL;
    request->method = NULL;
    request->params = NULL;
    request->result = NULL;
}

static char *message_text(JsonObject *message, gsize *length)
{
    g_autoptr(JsonNode) root = json_node_alloc();
    g_autoptr(JsonGenerator) generator = json_generator_new();

    json_node_init_object(root, message);
    json_generator_set_root(generator, root);
    return json_generator_to_data(generator, length);
}

static JsonObject *envelope(void)
{
    JsonObject *message = json_object_new();

    json_object_set_string_member(message, "jsonrpc", "2.0");
    return message;
}

static void set_id(JsonObject *message, JsonNode *id)
{
    if (id)
        json_object_set_member(message, "id", json_node_copy(id));
    else
        json_object_set_null_member(message, "id");
}

char *cam_response_text(JsonNode *id, JsonObject *result, gsize *length)
{
    g_autoptr(JsonObject) message = envelope();

    set_id(message, id);
    json_object_set_object_member(message, "result", json_object_ref(result));
    return message_text(message, length);
}

char *cam_error_text(JsonNode *id, int code, const char *text, JsonObject *data, gsize *length)
{
    g_autoptr(JsonObject) message = envelope();
    JsonObject *error = json_object_new();

    set_id(message, id);
    json_object_set_int_member(error, "code", code);
    json_object_set_string_member(error, "message", text);
    if (data)
        json_object_set_object_member(error, "data", json_object_ref(data));
    json_object_set_object_member(message, "error", error);
    return message_text(message, length);
}

char *cam_request_text(const char *id, const char *method, JsonObject *params, gsize *length)
{
    g_autoptr(JsonObject) message = envelope();

    json_object_set_string_member(message, "id", id);
    json_object_set_string_member(message, "method", method);
    json_object_set_object_member(message, "params", json_object_ref(params));
    return message_text(message, length);
}

char *cam_notification_text(const char *method, JsonObject *params, gsize *length)
{
    g_autoptr(JsonObject) message = envelope();

    json_object_set_string_member(message, "method", method);
    json_object_set_object_member(message, "params", json_object_ref(params));
    return message_text(message, length);
}
