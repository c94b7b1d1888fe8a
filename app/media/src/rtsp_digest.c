#include "rtsp_digest.h"

#include <string.h>

void cam_digest_clear(CamDigest *digest)
{
    g_free(digest->username);
    g_free(digest->realm);
    g_free(digest->nonce);
    g_free(digest->uri);
    g_free(digest->response);
    g_free(digest->algorithm);
    g_free(digest->qop);
    g_free(digest->nc);
    g_free(digest->cnonce);
    *digest = (CamDigest){0};
}

static char **field(CamDigest *digest, const char *name)
{
    const struct {
        const char *name;
        char **value;
    } fields[] = {
        {"username", &digest->username}, {"realm", &digest->realm},
        {"nonce", &digest->nonce},       {"uri", &digest->uri},
        {"response", &digest->response}, {"algorithm", &digest->algorithm},
        {"qop", &digest->qop},           {"nc", &digest->nc},
        {"cnonce", &digest->cnonce},
    };

    for (guint i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (g_ascii_strcasecmp(name, fields[i].name) == 0)
            return fields[i].value;
    }
    return NULL;
}

static const char *skip_space(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

/* Reads a token or quoted string at *TEXT and moves it on; NULL when a quote is not closed. */
static char *read_value(const char **text)
{
    g_autoptr(GString) value = g_string_new(NULL);
    const char *at = *text;

    if (*at == '"') {
        for (at++; *at && *at != '"'; at++) {
            if (*at == '\\' && at[1])
                at++;
            g_string_append_c(value, *at);
        }
        if (*at != '"')
            return NULL;
        at++;
    } else {
        for (; *at && *at != ',' && *at != ' ' && *at != '\t'; at++)
            g_string_append_c(value, *at);
    }
    *text = at;
    return g_strdup(value->str);
}

/* One name=value; FALSE at the first fault. Unknown names are skipped, a second value is a fault.
 */
static gboolean read_pair(const char **text, CamDigest *digest)
{
    const char *equals = strchr(*text, '=');
    g_autofree char *name = NULL;
    char *value, **target;

    if (!equals)
        return FALSE;
    name = g_strchomp(g_strndup(*text, (gsize)(equals - *text)));
    *text = skip_space(equals + 1);
    value = read_value(text);
    target = field(digest, name);
    if (!value || (target && *target)) {
        g_free(value);
        return FALSE;
    }
    if (target)
        *target = value;
    else
        g_free(value);
    *text = skip_space(*text);
    return TRUE;
}

gboolean cam_digest_parse(const char *parameters, CamDigest *digest)
{
    const char *text = skip_space(parameters);
    gboolean ok = strlen(parameters) <= 4096;

    *digest = (CamDigest){0};
    while (ok && *text) {
        ok = read_pair(&text, digest);
        if (ok && *text)
            ok = *text++ == ',';
        text = skip_space(text);
    }
    ok = ok && digest->username && digest->realm && digest->nonce && digest->uri &&
         digest->response && (!digest->qop || (digest->nc && digest->cnonce));
    if (!ok)
        cam_digest_clear(digest);
    return ok;
}

char *cam_digest_ha1(GChecksumType hash, const char *user, const char *realm, const char *password)
{
    g_autofree char *text = g_strconcat(user, ":", realm, ":", password, NULL);

    return g_compute_checksum_for_string(hash, text, -1);
}

char *cam_digest_response(GChecksumType hash, const char *ha1, const char *method,
                          const CamDigest *digest)
{
    g_autofree char *a2 = g_strconcat(method, ":", digest->uri, NULL);
    g_autofree char *ha2 = g_compute_checksum_for_string(hash, a2, -1);
    g_autofree char *text = NULL;

    if (digest->qop)
        text =
            g_strjoin(":", ha1, digest->nonce, digest->nc, digest->cnonce, digest->qop, ha2, NULL);
    else
        text = g_strjoin(":", ha1, digest->nonce, ha2, NULL);
    return g_compute_checksum_for_string(hash, text, -1);
}

gboolean cam_basic_parse(const char *credentials, char **user, char **password)
{
    g_autofree char *text = NULL;
    gsize length;
    char *colon;

    credentials = skip_space(credentials);
    if (!*credentials || strlen(credentials) > 4096)
        return FALSE;
    text = (char *)g_base64_decode(credentials, &length);
    text = g_realloc(text, length + 1);
    text[length] = '\0';
    colon = strchr(text, ':');
    if (strlen(text) != length || !colon)
        return FALSE;
    *user = g_strndup(text, (gsize)(colon - text));
    *password = g_strdup(colon + 1);
    return TRUE;
}

gboolean cam_equal_constant_time(const char *a, const char *b)
{
    gsize length_a = a ? strlen(a) : 0, length_b = b ? strlen(b) : 0;
    guint difference = length_a != length_b || length_a == 0;

    for (gsize i = 0; i < length_a && length_b; i++)
        difference |= (guint)(guchar)a[i] ^ (guint)(guchar)b[i % length_b];
    return difference == 0;
}

/* The path of an RTSP address without its query and last slash. */
static char *path_of(const char *uri)
{
    const char *authority = strstr(uri, "://");
    const char *path = authority ? strchr(authority + 3, '/') : uri;
    char *copy;
    gsize length;

    if (!path)
        return g_strdup("");
    copy = g_strndup(path, strcspn(path, "?#"));
    length = strlen(copy);
    if (length && copy[length - 1] == '/')
        copy[length - 1] = '\0';
    return copy;
}

gboolean cam_digest_uri_matches(const char *digest_uri, const char *request_uri)
{
    g_autofree char *signed_path = path_of(digest_uri);
    g_autofree char *path = path_of(request_uri);
    gsize length = strlen(signed_path);

    if (!g_str_has_prefix(path, signed_path))
        return FALSE;
    return path[length] == '\0' || (path[length] == '/' && length > 1);
}

guint32 cam_digest_count(const CamDigest *digest)
{
    gsize length = digest->nc ? strlen(digest->nc) : 0;

    if (length == 0 || length > 8 || strspn(digest->nc, "0123456789abcdefABCDEF") != length)
        return 0;
    return (guint32)g_ascii_strtoull(digest->nc, NULL, 16);
}

static char *sign(const guint8 key[CAM_NONCE_KEY_SIZE], const char *time_text, const char *address)
{
    g_autofree char *text = g_strconcat(time_text, address, NULL);
    char *mac = g_compute_hmac_for_string(G_CHECKSUM_SHA256, key, CAM_NONCE_KEY_SIZE, text, -1);

    mac[32] = '\0';
    return mac;
}

char *cam_nonce_new(const guint8 key[CAM_NONCE_KEY_SIZE], const char *address, gint64 now_us)
{
    g_autofree char *time_text = g_strdup_printf("%016" G_GINT64_MODIFIER "x", now_us);
    g_autofree char *mac = sign(key, time_text, address);

    return g_strconcat(time_text, mac, NULL);
}

gint64 cam_nonce_age(const char *nonce, gint64 now_us)
{
    g_autofree char *time_text = g_strndup(nonce, 16);

    return now_us - (gint64)g_ascii_strtoull(time_text, NULL, 16);
}

CamNonceState cam_nonce_check(const guint8 key[CAM_NONCE_KEY_SIZE], const char *nonce,
                              const char *address, gint64 now_us, gint64 lifetime_us)
{
    g_autofree char *time_text = g_strndup(nonce, 16);
    g_autofree char *mac = sign(key, time_text, address);

    if (strlen(nonce) != 48 || !cam_equal_constant_time(nonce + 16, mac))
        return CAM_NONCE_FORGED;
    return cam_nonce_age(nonce, now_us) <= lifetime_us ? CAM_NONCE_VALID : CAM_NONCE_STALE;
}
