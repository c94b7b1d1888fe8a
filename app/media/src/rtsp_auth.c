#include "rtsp_auth.h"
#include "events.h"
#include "rtsp_digest.h"

#include <string.h>
#include <sys/random.h>

#define NONCE_LIFETIME_US (300 * G_USEC_PER_SEC)

struct _CamRtspAuth {
    GstRTSPAuth parent;
    CamRtspClients *clients;
    GMutex lock;
    char *realm;
    gboolean basic;
    GHashTable *users;
    guint8 key[CAM_NONCE_KEY_SIZE];
    /* Unknown users are checked against this, so that they take as long as known ones. */
    char *nobody_ha1;
};

typedef struct {
    GstRTSPAuthClass parent;
} CamRtspAuthClass;

GType cam_rtsp_auth_get_type(void);
G_DEFINE_TYPE(CamRtspAuth, cam_rtsp_auth, GST_TYPE_RTSP_AUTH)

typedef enum { LOGIN_OK, LOGIN_NONE, LOGIN_STALE, LOGIN_WRONG } Login;

/* With lock held. */
static const char *ha1_of(CamRtspAuth *self, const char *user, gboolean *known)
{
    const char *ha1 = g_hash_table_lookup(self->users, user);

    *known = ha1 != NULL;
    return ha1 ? ha1 : self->nobody_ha1;
}

static Login check_digest(CamRtspAuth *self, GstRTSPContext *ctx, const char *parameters,
                          char **user)
{
    CamDigest digest;
    g_autofree char *expected = NULL;
    const char *uri = NULL;
    /* NULL for a method that RTSP does not have. */
    const char *method = gst_rtsp_method_as_text(ctx->method);
    CamNonceState nonce;
    gboolean known, right;

    if (!cam_digest_parse(parameters, &digest))
        return LOGIN_WRONG;
    *user = g_strdup(digest.username);
    gst_rtsp_message_parse_request(ctx->request, NULL, &uri, NULL);
    g_mutex_lock(&self->lock);
    expected = cam_digest_response(G_CHECKSUM_MD5, ha1_of(self, digest.username, &known),
                                   method ? method : "", &digest);
    nonce = cam_nonce_check(self->key, digest.nonce, g_get_monotonic_time(), NONCE_LIFETIME_US);
    right = cam_equal_constant_time(expected, digest.response) & known;
    right &= g_str_equal(digest.realm, self->realm);
    g_mutex_unlock(&self->lock);
    right &= cam_digest_uri_matches(digest.uri, uri);
    right &= !digest.algorithm || g_ascii_strcasecmp(digest.algorithm, "MD5") == 0;
    right &= !digest.qop || g_str_equal(digest.qop, "auth");
    /* A connection that lives on may keep the nonce with which it began. */
    if (nonce == CAM_NONCE_STALE &&
        cam_rtsp_client_knows_nonce(self->clients, ctx->client, digest.nonce))
        nonce = CAM_NONCE_VALID;
    if (right && nonce == CAM_NONCE_VALID)
        cam_rtsp_client_authenticated(self->clients, ctx->client, digest.username, digest.nonce);
    cam_digest_clear(&digest);
    /* With a nonce that is not ours (of the process before this one, say) nothing can be judged. */
    if (nonce == CAM_NONCE_FORGED)
        return LOGIN_STALE;
    if (!right)
        return LOGIN_WRONG;
    return nonce == CAM_NONCE_VALID ? LOGIN_OK : LOGIN_STALE;
}

static Login check_basic(CamRtspAuth *self, GstRTSPContext *ctx, const char *credentials,
                         char **user)
{
    g_autofree char *password = NULL;
    g_autofree char *ha1 = NULL;
    gboolean known, right;

    if (!cam_basic_parse(credentials, user, &password))
        return LOGIN_WRONG;
    g_mutex_lock(&self->lock);
    ha1 = cam_digest_ha1(G_CHECKSUM_MD5, *user, self->realm, password);
    right = cam_equal_constant_time(ha1, ha1_of(self, *user, &known)) & known & self->basic;
    g_mutex_unlock(&self->lock);
    if (right)
        cam_rtsp_client_authenticated(self->clients, ctx->client, *user, NULL);
    return right ? LOGIN_OK : LOGIN_WRONG;
}

static Login check_login(CamRtspAuth *self, GstRTSPContext *ctx, char **user)
{
    char *header = NULL;

    *user = NULL;
    if (gst_rtsp_message_get_header(ctx->request, GST_RTSP_HDR_AUTHORIZATION, &header, 0) !=
        GST_RTSP_OK)
        return LOGIN_NONE;
    if (g_ascii_strncasecmp(header, "Digest ", 7) == 0)
        return check_digest(self, ctx, header + 7, user);
    if (g_ascii_strncasecmp(header, "Basic ", 6) == 0)
        return check_basic(self, ctx, header + 6, user);
    return LOGIN_WRONG;
}

static void start_response(GstRTSPContext *ctx, GstRTSPStatusCode code)
{
    gst_rtsp_message_init_response(ctx->response, code, gst_rtsp_status_as_text(code),
                                   ctx->request);
}

static void ask_for_login(CamRtspAuth *self, GstRTSPContext *ctx, gboolean stale)
{
    g_autofree char *nonce = cam_nonce_new(self->key, g_get_monotonic_time());
    g_autofree char *digest = NULL;
    g_autofree char *basic = NULL;

    start_response(ctx, GST_RTSP_STS_UNAUTHORIZED);
    g_mutex_lock(&self->lock);
    digest = g_strdup_printf("Digest realm=\"%s\", nonce=\"%s\", algorithm=MD5, qop=\"auth\"%s",
                             self->realm, nonce, stale ? ", stale=true" : "");
    if (self->basic)
        basic = g_strdup_printf("Basic realm=\"%s\"", self->realm);
    g_mutex_unlock(&self->lock);
    gst_rtsp_message_add_header(ctx->response, GST_RTSP_HDR_WWW_AUTHENTICATE, digest);
    if (basic)
        gst_rtsp_message_add_header(ctx->response, GST_RTSP_HDR_WWW_AUTHENTICATE, basic);
    gst_rtsp_client_send_message(ctx->client, ctx->session, ctx->response);
}

static void refuse(CamRtspAuth *self, GstRTSPContext *ctx)
{
    start_response(ctx, GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH);
    gst_rtsp_message_add_header(ctx->response, GST_RTSP_HDR_CONNECTION, "close");
    gst_rtsp_client_send_message(ctx->client, ctx->session, ctx->response);
    cam_rtsp_client_close_soon(self->clients, ctx->client);
}

static void emit_failure(GstRTSPContext *ctx, const char *user)
{
    JsonObject *object = json_object_new();
    g_autofree char *valid = user ? g_utf8_make_valid(user, -1) : NULL;

    cam_json_set_string(object, "user", valid);
    json_object_set_string_member(object, "address", gst_rtsp_connection_get_ip(ctx->conn));
    cam_event_emit("rtsp.auth_failed", object);
}

/* Every request passes here first. */
static gboolean admit(CamRtspAuth *self, GstRTSPContext *ctx)
{
    g_autofree char *user = NULL;
    Login login;

    cam_rtsp_client_seen(self->clients, ctx->client);
    if (cam_rtsp_client_refused(self->clients, ctx->client)) {
        refuse(self, ctx);
        return FALSE;
    }
    if (ctx->method == GST_RTSP_OPTIONS)
        return TRUE;
    login = check_login(self, ctx, &user);
    if (login == LOGIN_OK)
        return TRUE;
    if (login == LOGIN_WRONG)
        emit_failure(ctx, user);
    ask_for_login(self, ctx, login == LOGIN_STALE);
    return FALSE;
}

static gboolean check(GstRTSPAuth *auth, GstRTSPContext *ctx, const gchar *what)
{
    if (g_str_equal(what, GST_RTSP_AUTH_CHECK_URL))
        return admit((CamRtspAuth *)auth, ctx);
    /* Clients do not choose where UDP is sent to: that would make an amplifier of the camera. */
    return !g_str_equal(what, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS);
}

static void cam_rtsp_auth_finalize(GObject *object)
{
    CamRtspAuth *self = (CamRtspAuth *)object;

    g_hash_table_unref(self->users);
    g_free(self->realm);
    g_free(self->nobody_ha1);
    g_mutex_clear(&self->lock);
    G_OBJECT_CLASS(cam_rtsp_auth_parent_class)->finalize(object);
}

static void cam_rtsp_auth_class_init(CamRtspAuthClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = cam_rtsp_auth_finalize;
    klass->parent.check = check;
}

static void random_bytes(guint8 *bytes, gsize size)
{
    while (getrandom(bytes, size, 0) != (gssize)size)
        continue;
}

static void cam_rtsp_auth_init(CamRtspAuth *self)
{
    guint8 secret[16];

    g_mutex_init(&self->lock);
    self->realm = g_strdup("camera");
    self->users = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    random_bytes(self->key, sizeof(self->key));
    random_bytes(secret, sizeof(secret));
    self->nobody_ha1 = g_compute_checksum_for_data(G_CHECKSUM_MD5, secret, sizeof(secret));
}

CamRtspAuth *cam_rtsp_auth_new(CamRtspClients *clients)
{
    CamRtspAuth *self = g_object_new(cam_rtsp_auth_get_type(), NULL);

    self->clients = clients;
    return self;
}

void cam_rtsp_auth_configure(CamRtspAuth *self, const char *realm, gboolean basic)
{
    g_mutex_lock(&self->lock);
    g_free(self->realm);
    self->realm = g_strdup(realm);
    self->basic = basic;
    g_mutex_unlock(&self->lock);
}

GHashTable *cam_rtsp_auth_set_users(CamRtspAuth *self, GHashTable *users)
{
    GHashTable *same = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer name, ha1;

    g_mutex_lock(&self->lock);
    g_hash_table_iter_init(&iter, users);
    while (g_hash_table_iter_next(&iter, &name, &ha1)) {
        if (g_strcmp0(g_hash_table_lookup(self->users, name), ha1) == 0)
            g_hash_table_add(same, g_strdup(name));
    }
    g_hash_table_unref(self->users);
    self->users = users;
    g_mutex_unlock(&self->lock);
    return same;
}
