#include "rtsp_auth.h"
#include "events.h"
#include "rtsp_media.h"
#include "rtsp_recording.h"

struct _CamRtspAuth {
    GstRTSPAuth parent;
    CamRtspAuthSetup setup;
};

typedef struct {
    GstRTSPAuthClass parent;
} CamRtspAuthClass;

GType cam_rtsp_auth_get_type(void);
G_DEFINE_TYPE(CamRtspAuth, cam_rtsp_auth, GST_TYPE_RTSP_AUTH)

static void start_response(GstRTSPContext *ctx, GstRTSPStatusCode code)
{
    gst_rtsp_message_init_response(ctx->response, code, gst_rtsp_status_as_text(code),
                                   ctx->request);
}

static void ask_for_login(CamRtspAuth *self, GstRTSPContext *ctx, gboolean stale)
{
    g_auto(GStrv) challenges =
        cam_access_challenges(self->setup.access, gst_rtsp_connection_get_ip(ctx->conn),
                              self->setup.tls, stale, g_get_monotonic_time());

    start_response(ctx, GST_RTSP_STS_UNAUTHORIZED);
    for (char **value = challenges; *value; value++)
        gst_rtsp_message_add_header(ctx->response, GST_RTSP_HDR_WWW_AUTHENTICATE, *value);
    gst_rtsp_client_send_message(ctx->client, ctx->session, ctx->response);
}

static void refuse(CamRtspAuth *self, GstRTSPContext *ctx)
{
    start_response(ctx, GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH);
    gst_rtsp_message_add_header(ctx->response, GST_RTSP_HDR_CONNECTION, "close");
    gst_rtsp_client_send_message(ctx->client, ctx->session, ctx->response);
    cam_rtsp_client_close_soon(self->setup.clients, ctx->client);
}

static void emit_failure(GstRTSPContext *ctx, const char *user)
{
    JsonObject *object = json_object_new();
    g_autofree char *valid = user ? g_utf8_make_valid(user, -1) : NULL;

    cam_json_set_string(object, "user", valid);
    json_object_set_string_member(object, "address", gst_rtsp_connection_get_ip(ctx->conn));
    cam_event_emit("rtsp.auth_failed", object);
}

static CamLogin check_login(CamRtspAuth *self, GstRTSPContext *ctx, CamLoginClaim *claim)
{
    g_autofree char *user = NULL;
    g_autofree char *nonce = NULL;
    /* NULL for a method that RTSP does not have. */
    const char *method = gst_rtsp_method_as_text(ctx->method), *uri = NULL;
    CamLoginRequest request = {.method = method ? method : "",
                               .address = gst_rtsp_connection_get_ip(ctx->conn),
                               .tls = self->setup.tls};
    char *header = NULL;

    cam_rtsp_client_login(self->setup.clients, ctx->client, &user, &nonce);
    gst_rtsp_message_get_header(ctx->request, GST_RTSP_HDR_AUTHORIZATION, &header, 0);
    gst_rtsp_message_parse_request(ctx->request, NULL, &uri, NULL);
    request.uri = uri;
    request.authorization = header;
    request.logged_in_user = user;
    request.logged_in_nonce = nonce;
    return cam_access_check(self->setup.access, &request, g_get_monotonic_time(), claim);
}

/* The camera that a request is about, -1: none. What is set up stays the camera that it was, even
 * when its address means another now. */
static int camera_of(CamRtspAuth *self, GstRTSPContext *ctx)
{
    gboolean begins = ctx->method == GST_RTSP_DESCRIBE || ctx->method == GST_RTSP_SETUP;
    int camera = begins ? -1 : cam_rtsp_client_camera(self->setup.clients, ctx->client);
    GstRTSPMediaFactory *factory;
    g_autofree char *path = NULL;
    int matched;

    if (camera >= 0 || !ctx->uri)
        return camera;
    path = gst_rtsp_mount_points_make_path(self->setup.mounts, ctx->uri);
    factory = path ? gst_rtsp_mount_points_match(self->setup.mounts, path, &matched) : NULL;
    camera = factory ? cam_rtsp_factory_camera(factory) : -1;
    g_clear_object(&factory);
    return camera;
}

static gboolean respond(GstRTSPContext *ctx, GstRTSPStatusCode code)
{
    if (code == GST_RTSP_STS_OK)
        return TRUE;
    start_response(ctx, code);
    gst_rtsp_client_send_message(ctx->client, ctx->session, ctx->response);
    return FALSE;
}

static gboolean may_watch(CamRtspAuth *self, GstRTSPContext *ctx, const char *user)
{
    int camera = camera_of(self, ctx);

    return respond(ctx, camera < 0 || cam_access_may_watch(self->setup.access, user, camera)
                            ? GST_RTSP_STS_OK
                            : GST_RTSP_STS_NOT_FOUND);
}

/* Before anything is made for a recording, the server says which one it is. A connection has one
 * at a time: what was described is set up without its number. */
static gboolean may_play(CamRtspAuth *self, GstRTSPContext *ctx, const char *user)
{
    GstRTSPStatusCode code = GST_RTSP_STS_OK;

    if (!cam_rtsp_client_plays_recording(self->setup.clients, ctx->client))
        code = cam_recording_resolve(ctx->client, ctx->uri, user);
    else if (ctx->method == GST_RTSP_DESCRIBE && !cam_recording_is_same(ctx->client, ctx->uri))
        code = GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;
    if (code == GST_RTSP_STS_OK &&
        !cam_access_may_watch(self->setup.access, user, cam_recording_of(ctx->client)->camera))
        code = GST_RTSP_STS_NOT_FOUND;
    return respond(ctx, code);
}

/* Every request passes here first. */
static gboolean admit(CamRtspAuth *self, GstRTSPContext *ctx)
{
    CamLoginClaim claim;
    CamLogin login;
    gboolean admitted = FALSE;

    cam_rtsp_client_seen(self->setup.clients, ctx->client);
    if (cam_rtsp_client_refused(self->setup.clients, ctx->client)) {
        refuse(self, ctx);
        return FALSE;
    }
    if (ctx->method == GST_RTSP_OPTIONS)
        return TRUE;
    login = check_login(self, ctx, &claim);
    if (login == CAM_LOGIN_OK) {
        cam_rtsp_client_authenticated(self->setup.clients, ctx->client, claim.user, claim.nonce);
        admitted = cam_recording_is_meant(ctx->uri) &&
                           (ctx->method == GST_RTSP_DESCRIBE || ctx->method == GST_RTSP_SETUP)
                       ? may_play(self, ctx, claim.user)
                       : may_watch(self, ctx, claim.user);
    } else {
        if (login == CAM_LOGIN_WRONG)
            emit_failure(ctx, claim.user);
        ask_for_login(self, ctx, login == CAM_LOGIN_STALE);
    }
    cam_login_claim_clear(&claim);
    return admitted;
}

static gboolean check(GstRTSPAuth *auth, GstRTSPContext *ctx, const gchar *what)
{
    if (g_str_equal(what, GST_RTSP_AUTH_CHECK_CONNECT))
        return GST_RTSP_AUTH_CLASS(cam_rtsp_auth_parent_class)->check(auth, ctx, what);
    if (g_str_equal(what, GST_RTSP_AUTH_CHECK_URL))
        return admit((CamRtspAuth *)auth, ctx);
    /* Clients do not choose where UDP is sent to: that would make an amplifier of the camera. */
    return !g_str_equal(what, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS);
}

static void cam_rtsp_auth_class_init(CamRtspAuthClass *klass)
{
    klass->parent.check = check;
}

static void cam_rtsp_auth_init(CamRtspAuth *self)
{
}

CamRtspAuth *cam_rtsp_auth_new(const CamRtspAuthSetup *setup)
{
    CamRtspAuth *self = g_object_new(cam_rtsp_auth_get_type(), NULL);

    self->setup = *setup;
    return self;
}
