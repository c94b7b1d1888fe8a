/* The methods of the RTSP server. */
#include "certificate.h"
#include "control_private.h"

#include <string.h>

#define MAX_USERS 1000
#define MAX_LOCKED 5000

/* An older peer sends whether Basic is offered: always or never. */
static CamBasic read_basic(CamParams *in)
{
    static const char *const names[] = {"never", "tls", "always"};
    JsonNode *node =
        cam_params_has(in, "basic") ? json_object_get_member(in->object, "basic") : NULL;
    const char *name;

    if (node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_BOOLEAN)
        return json_node_get_boolean(node) ? CAM_BASIC_ALWAYS : CAM_BASIC_NEVER;
    name = cam_params_string(in, "basic", 16);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(name, names[i]))
            return (CamBasic)i;
    }
    cam_params_fault(in, "basic", "must be always, tls or never");
    return CAM_BASIC_NEVER;
}

static void check_address(CamParams *in, const char *address)
{
    if (*address && !g_hostname_is_ip_address(address))
        cam_params_fault(in, "address", "must be an IP address");
}

static void check_realm(CamParams *in, const char *realm)
{
    for (const char *c = realm; *c; c++) {
        if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\')
            cam_params_fault(in, "realm", "only printable ASCII without quotes is allowed");
    }
}

typedef struct {
    const char *file, *key_file; /* key_file NULL: in the same file */
} CertificateFiles;

static CertificateFiles read_certificate_files(CamParams *in)
{
    CertificateFiles files = {.file = cam_params_path(in, "certificate_file")};

    if (cam_params_given(in, "key_file"))
        files.key_file = cam_params_path(in, "key_file");
    return files;
}

/* NULL: CALL was answered. */
static GTlsCertificate *load_certificate(CamRpcCall *call, const CertificateFiles *files)
{
    CamParamFault fault = {0};
    CamParams in = cam_params_open(NULL, "", NULL, &fault);
    g_autofree char *message = NULL;
    GTlsCertificate *certificate = NULL;
    int error_number = 0;

    if (!cam_certificates_work()) {
        cam_rpc_call_fail(call, CAM_RPC_UNSUPPORTED, "this machine has no TLS library", NULL);
        return NULL;
    }
    certificate = cam_certificate_load(files->file, files->key_file, &error_number, &message);
    if (certificate)
        return certificate;
    if (error_number) {
        cam_service_fail_io(call, error_number, message);
    } else {
        cam_params_fault(&in, "certificate_file", "%s", message);
        cam_service_refuse(call, &fault);
    }
    return NULL;
}

void cam_method_rtsp_start(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"address", "port",     "max_connections",  "realm",
                                        "basic",   "tls_port", "certificate_file", "key_file",
                                        NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    CamRtspSetup setup = {
        .address = cam_params_string(&in, "address", 64),
        .port = (int)cam_params_int(&in, "port", 0, 65535),
        .max_connections = (int)cam_params_int(&in, "max_connections", 1, 1000),
        .realm = cam_params_string(&in, "realm", 128),
        .basic = read_basic(&in),
        .tls_port = -1,
    };
    g_autoptr(GTlsCertificate) certificate = NULL;
    gboolean tls = cam_params_given(&in, "tls_port");
    CertificateFiles files = {0};
    CamRtspPorts ports;
    int error_number = 0;
    JsonObject *result;

    check_address(&in, setup.address);
    check_realm(&in, setup.realm);
    if (tls) {
        setup.tls_port = (int)cam_params_int(&in, "tls_port", 0, 65535);
        files = read_certificate_files(&in);
    }
    if (cam_service_refuse(call, &fault))
        return;
    if (tls && !(certificate = load_certificate(call, &files)))
        return;
    setup.certificate = certificate;
    if (!cam_rtsp_start(service->rtsp, &setup, &ports, &error_number)) {
        cam_service_fail_io(call, error_number, "RTSP");
        return;
    }
    result = json_object_new();
    json_object_set_int_member(result, "port", ports.port);
    cam_json_set_int_or_null(result, "tls_port", ports.tls_port >= 0, ports.tls_port);
    cam_rpc_call_reply(call, result);
}

void cam_method_rtsp_set_certificate(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"certificate_file", "key_file", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    CertificateFiles files = read_certificate_files(&in);
    g_autoptr(GTlsCertificate) certificate = NULL;

    if (cam_service_refuse(call, &fault) || !(certificate = load_certificate(call, &files)))
        return;
    cam_rtsp_set_certificate(service->rtsp, certificate);
    cam_rpc_call_reply(call, json_object_new());
}

void cam_method_rtsp_set_users(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"users", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    GHashTable *users = cam_params_rtsp_users(&in, "users", MAX_USERS);

    if (cam_service_refuse(call, &fault)) {
        g_hash_table_unref(users);
        return;
    }
    cam_rtsp_set_users(service->rtsp, users);
    cam_rpc_call_reply(call, json_object_new());
}

void cam_method_rtsp_set_lockout(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"users", "addresses", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    GHashTable *users = cam_params_names(&in, "users", MAX_LOCKED);
    GPtrArray *addresses = cam_params_addresses(&in, "addresses", MAX_LOCKED);

    if (cam_service_refuse(call, &fault)) {
        g_hash_table_unref(users);
        g_ptr_array_unref(addresses);
        return;
    }
    cam_rtsp_set_lockout(service->rtsp, users, addresses);
    cam_rpc_call_reply(call, json_object_new());
}

void cam_method_rtsp_kick(CamService *service, CamRpcCall *call, JsonObject *params)
{
    static const char *const names[] = {"user", "client", NULL};
    CamParamFault fault = {0};
    CamParams in = cam_params_open(params, "", names, &fault);
    gboolean by_user = cam_params_has(&in, "user");
    const char *user = by_user ? cam_params_string(&in, "user", 256) : NULL;
    gint64 client = by_user && !cam_params_has(&in, "client")
                        ? 0
                        : cam_params_int(&in, "client", 1, G_MAXINT64);
    JsonObject *result;

    if (by_user && client)
        cam_params_fault(&in, "client", "user or client, not both");
    if (cam_service_refuse(call, &fault))
        return;
    result = json_object_new();
    json_object_set_int_member(result, "closed",
                               by_user ? cam_rtsp_kick_user(service->rtsp, user)
                                       : cam_rtsp_kick_client(service->rtsp, client));
    cam_rpc_call_reply(call, result);
}
