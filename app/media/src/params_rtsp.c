#include "params_rtsp.h"

#include <string.h>

#define NAME_MAX_BYTES 256
#define MAX_CAMERAS 64

static const char *hex(CamParams *params, const char *name, gsize length)
{
    const char *value = cam_params_string(params, name, length);

    if (strlen(value) != length || strspn(value, "0123456789abcdef") != length)
        cam_params_fault(params, name, "must be %" G_GSIZE_FORMAT " lower-case hex digits", length);
    return value;
}

/* NULL: all. */
static GArray *cameras(CamParams *params, const char *name)
{
    GArray *ids;
    JsonArray *array;

    if (!cam_params_given(params, name))
        return NULL;
    ids = g_array_new(FALSE, FALSE, sizeof(int));
    array = cam_params_array(params, name, 0, MAX_CAMERAS);
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        gboolean is_int =
            JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64;
        gint64 value = is_int ? json_node_get_int(node) : -1;
        int id = (int)value;

        if (value < 0 || value > G_MAXINT32)
            cam_params_fault(params, name, "must be ids of cameras");
        g_array_append_val(ids, id);
    }
    return ids;
}

/* An account from before the SHA-256 secret has none until its next login. */
static CamRtspUser *read_user(CamParams *params)
{
    const char *sha256 = NULL;
    CamRtspUser *user;

    if (cam_params_has(params, "ha1"))
        return cam_rtsp_user_new(hex(params, "ha1", 32), NULL);
    if (cam_params_given(params, "ha1_sha256"))
        sha256 = hex(params, "ha1_sha256", 64);
    user = cam_rtsp_user_new(hex(params, "ha1_md5", 32), sha256);
    user->cameras = cameras(params, "cameras");
    return user;
}

static void add_user(CamParams *params, const char *element, JsonNode *node, GHashTable *users)
{
    static const char *const names[] = {"name", "ha1_md5", "ha1_sha256", "cameras", NULL};
    static const char *const old_names[] = {"name", "ha1", NULL};
    g_autofree char *prefix = g_strconcat(params->prefix, element, ".", NULL);
    JsonObject *object;
    CamParams inner;
    const char *name;

    if (!JSON_NODE_HOLDS_OBJECT(node)) {
        cam_params_fault(params, element, "must be an object");
        return;
    }
    object = json_node_get_object(node);
    inner = cam_params_open(
        object, prefix, json_object_has_member(object, "ha1") ? old_names : names, params->fault);
    name = cam_params_string(&inner, "name", NAME_MAX_BYTES);
    if (g_hash_table_contains(users, name))
        cam_params_fault(&inner, "name", "must be unique");
    g_hash_table_replace(users, g_strdup(name), read_user(&inner));
}

GHashTable *cam_params_rtsp_users(CamParams *params, const char *name, guint max)
{
    GHashTable *users =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)cam_rtsp_user_free);
    JsonArray *array = cam_params_array(params, name, 0, max);

    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        g_autofree char *element = g_strdup_printf("%s[%u]", name, i);

        add_user(params, element, json_array_get_element(array, i), users);
    }
    return users;
}

/* "" after a fault. */
static const char *string_at(CamParams *params, const char *name, JsonArray *array, guint i)
{
    JsonNode *node = json_array_get_element(array, i);
    const char *value = "";

    if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
        value = json_node_get_string(node);
    if (!*value || strlen(value) > NAME_MAX_BYTES) {
        cam_params_fault(params, name, "must be strings of 1 … %d bytes", NAME_MAX_BYTES);
        return "";
    }
    return value;
}

GHashTable *cam_params_names(CamParams *params, const char *name, guint max)
{
    GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    JsonArray *array = cam_params_array(params, name, 0, max);

    for (guint i = 0; array && i < json_array_get_length(array); i++)
        g_hash_table_add(set, g_strdup(string_at(params, name, array, i)));
    return set;
}

/* NULL: neither. GLib complains aloud of a prefix that no address has. */
static GInetAddressMask *parse_mask(const char *text)
{
    const char *slash = strchr(text, '/');

    if (slash && (strspn(slash + 1, "0123456789") != strlen(slash + 1) || strlen(slash + 1) > 3 ||
                  g_ascii_strtoull(slash + 1, NULL, 10) > 128))
        return NULL;
    return g_inet_address_mask_new_from_string(text, NULL);
}

GPtrArray *cam_params_addresses(CamParams *params, const char *name, guint max)
{
    GPtrArray *masks = g_ptr_array_new_with_free_func(g_object_unref);
    JsonArray *array = cam_params_array(params, name, 0, max);

    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        const char *text = string_at(params, name, array, i);
        GInetAddressMask *mask = *text ? parse_mask(text) : NULL;

        if (mask)
            g_ptr_array_add(masks, mask);
        else
            cam_params_fault(params, name, "must be IP addresses or networks");
    }
    return masks;
}
