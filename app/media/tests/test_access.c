/* The login decisions of RTSP: algorithms, nonces, Basic, cameras, lockout. */
#include "rtsp_access.h"
#include "rtsp_digest.h"

#include <gio/gio.h>
#include <string.h>

#define URI "rtsp://10.0.0.1/stream1"
#define ADDRESS "10.0.0.7"
#define SECOND ((gint64)G_USEC_PER_SEC)

static CamRtspUser *make_user(const char *name, const char *password, gboolean sha256)
{
    g_autofree char *md5 = cam_digest_ha1(G_CHECKSUM_MD5, name, "camera", password);
    g_autofree char *sha = cam_digest_ha1(G_CHECKSUM_SHA256, name, "camera", password);

    return cam_rtsp_user_new(md5, sha256 ? sha : NULL);
}

static GHashTable *make_users(void)
{
    GHashTable *users =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)cam_rtsp_user_free);
    CamRtspUser *guest = make_user("guest", "two", TRUE);
    int camera = 3;

    guest->cameras = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(guest->cameras, camera);
    g_hash_table_insert(users, g_strdup("admin"), make_user("admin", "one", TRUE));
    g_hash_table_insert(users, g_strdup("guest"), guest);
    return users;
}

static CamAccess *make_access(CamBasic basic)
{
    CamAccess *access = cam_access_new();

    cam_access_configure(access, "camera", basic);
    g_hash_table_unref(cam_access_set_users(access, make_users()));
    return access;
}

static char *new_nonce(CamAccess *access, gint64 now)
{
    g_auto(GStrv) challenges = cam_access_challenges(access, ADDRESS, FALSE, FALSE, now);
    const char *start = strstr(challenges[0], "nonce=\"") + 7;

    return g_strndup(start, strcspn(start, "\""));
}

typedef struct {
    GChecksumType hash;
    const char *algorithm; /* NULL: not sent */
    const char *user, *password, *nonce, *nc, *address;
    gint64 now;
    const char *logged_in_user, *logged_in_nonce;
} Try;

static CamLogin attempt(CamAccess *access, const Try *try)
{
    g_autofree char *ha1 = cam_digest_ha1(try->hash, try->user, "camera", try->password);
    CamDigest digest = {.nonce = (char *)try->nonce,
                        .uri = (char *)URI,
                        .qop = (char *)(try->nc ? "auth" : NULL),
                        .nc = (char *)try->nc,
                        .cnonce = (char *)"c"};
    g_autofree char *response = cam_digest_response(try->hash, ha1, "DESCRIBE", &digest);
    g_autofree char *counted =
        try->nc ? g_strdup_printf(", qop=auth, nc=%s, cnonce=\"c\"", try->nc) : g_strdup("");
    g_autofree char *header =
        g_strdup_printf("Digest username=\"%s\", realm=\"camera\", nonce=\"%s\", uri=\"" URI
                        "\", response=\"%s\"%s%s%s",
                        try->user, try->nonce, response, counted,
                        try->algorithm ? ", algorithm=" : "", try->algorithm ? try->algorithm : "");
    CamLoginRequest request = {.authorization = header,
                               .method = "DESCRIBE",
                               .uri = URI,
                               .address = try->address ? try->address : ADDRESS,
                               .logged_in_user = try->logged_in_user,
                               .logged_in_nonce = try->logged_in_nonce};
    CamLoginClaim claim;
    CamLogin login = cam_access_check(access, &request, try->now, &claim);

    g_assert_cmpstr(claim.user, ==, try->user);
    cam_login_claim_clear(&claim);
    return login;
}

static void test_algorithms(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);
    g_autofree char *nonce = new_nonce(access, 0);
    Try try = {.user = "admin", .password = "one", .nonce = nonce, .hash = G_CHECKSUM_MD5};

    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    try.algorithm = "MD5";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    try.algorithm = "SHA-256";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    try.hash = G_CHECKSUM_SHA256;
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    try.algorithm = "sha-512-256";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    try.algorithm = "SHA-256";
    try.password = "wrong";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    try.user = "nobody";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    cam_access_free(access);
}

static void test_challenges(void)
{
    CamAccess *access = make_access(CAM_BASIC_TLS);
    GHashTable *users = make_users();
    char **challenges = cam_access_challenges(access, ADDRESS, FALSE, FALSE, 0);

    g_assert_cmpuint(g_strv_length(challenges), ==, 2);
    g_assert_nonnull(strstr(challenges[0], "algorithm=SHA-256"));
    g_assert_nonnull(strstr(challenges[1], "algorithm=MD5"));
    g_strfreev(challenges);
    challenges = cam_access_challenges(access, ADDRESS, TRUE, TRUE, 0);
    g_assert_cmpuint(g_strv_length(challenges), ==, 3);
    g_assert_true(g_str_has_suffix(challenges[1], ", stale=true"));
    g_assert_cmpstr(challenges[2], ==, "Basic realm=\"camera\"");
    g_strfreev(challenges);
    /* One of whom only the MD5 is known. */
    g_hash_table_insert(users, g_strdup("old"), make_user("old", "three", FALSE));
    g_hash_table_unref(cam_access_set_users(access, users));
    challenges = cam_access_challenges(access, ADDRESS, FALSE, FALSE, 0);
    g_assert_cmpuint(g_strv_length(challenges), ==, 1);
    g_assert_nonnull(strstr(challenges[0], "algorithm=MD5"));
    g_strfreev(challenges);
    cam_access_free(access);
}

static void test_nonces(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);
    g_autofree char *nonce = new_nonce(access, 0);
    Try try = {.user = "admin", .password = "one", .nonce = nonce, .nc = "00000001"};

    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_STALE);
    try.nc = "0000000a";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    try.nc = "00000009";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_STALE);
    try.nc = "0000000g";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    try.nc = "00000000";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    /* Somebody else's, a made-up one, an old one. */
    try.nc = "00000010";
    try.address = "10.0.0.8";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_STALE);
    try.address = NULL;
    try.nonce = "abc";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_STALE);
    try.nonce = nonce;
    try.now = 301 * SECOND;
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_STALE);
    try.password = "wrong";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_WRONG);
    try.password = "one";
    try.logged_in_nonce = nonce;
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    cam_access_free(access);
}

static void test_many_nonces(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);
    Try try = {.user = "admin", .password = "one", .nc = "1"};

    /* More than are remembered. */
    for (int i = 0; i < 5000; i++) {
        g_autofree char *nonce = new_nonce(access, i);

        try.nonce = nonce;
        try.now = i;
        g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
        g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_STALE);
    }
    cam_access_free(access);
}

static CamLogin try_basic(CamBasic basic, gboolean tls, const char *authorization)
{
    CamAccess *access = make_access(basic);
    CamLoginRequest request = {.authorization = authorization,
                               .method = "DESCRIBE",
                               .uri = URI,
                               .address = ADDRESS,
                               .tls = tls};
    CamLoginClaim claim;
    CamLogin login = cam_access_check(access, &request, 0, &claim);

    cam_login_claim_clear(&claim);
    cam_access_free(access);
    return login;
}

static void test_basic(void)
{
    const char *right = "Basic YWRtaW46b25l", *wrong = "Basic YWRtaW46dHdv";

    g_assert_cmpint(try_basic(CAM_BASIC_ALWAYS, FALSE, right), ==, CAM_LOGIN_OK);
    g_assert_cmpint(try_basic(CAM_BASIC_ALWAYS, FALSE, wrong), ==, CAM_LOGIN_WRONG);
    g_assert_cmpint(try_basic(CAM_BASIC_TLS, TRUE, right), ==, CAM_LOGIN_OK);
    g_assert_cmpint(try_basic(CAM_BASIC_TLS, TRUE, wrong), ==, CAM_LOGIN_WRONG);
    g_assert_cmpint(try_basic(CAM_BASIC_TLS, FALSE, right), ==, CAM_LOGIN_WRONG);
    g_assert_cmpint(try_basic(CAM_BASIC_NEVER, TRUE, right), ==, CAM_LOGIN_WRONG);
    g_assert_cmpint(try_basic(CAM_BASIC_ALWAYS, FALSE, NULL), ==, CAM_LOGIN_NONE);
    g_assert_cmpint(try_basic(CAM_BASIC_ALWAYS, FALSE, "Bearer x"), ==, CAM_LOGIN_WRONG);
    g_assert_cmpint(try_basic(CAM_BASIC_ALWAYS, FALSE, "Digest "), ==, CAM_LOGIN_WRONG);
}

static void lock(CamAccess *access, const char *user, const char *network)
{
    GHashTable *users = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GPtrArray *addresses = g_ptr_array_new_with_free_func(g_object_unref);

    if (user)
        g_hash_table_add(users, g_strdup(user));
    if (network)
        g_ptr_array_add(addresses, g_inet_address_mask_new_from_string(network, NULL));
    cam_access_set_lockout(access, users, addresses);
}

static void test_lockout(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);
    g_autofree char *nonce = new_nonce(access, 0);
    Try try = {.user = "admin", .password = "one", .nonce = nonce};

    lock(access, "admin", NULL);
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_LOCKED);
    try.password = "wrong";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_LOCKED);
    /* Right, but old: that must not show. */
    try.password = "one";
    try.now = 301 * SECOND;
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_LOCKED);
    try.now = 0;
    try.logged_in_user = "admin";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    lock(access, "guest", NULL);
    try.logged_in_user = NULL;
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    lock(access, NULL, "10.0.0.0/24");
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_LOCKED);
    try.logged_in_user = "guest";
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_LOCKED);
    lock(access, NULL, "10.0.0.8");
    g_assert_cmpint(attempt(access, &try), ==, CAM_LOGIN_OK);
    cam_access_free(access);
}

static CamLogin from(CamAccess *access, const char *address)
{
    CamLoginRequest request = {
        .authorization = "Basic x", .method = "DESCRIBE", .uri = URI, .address = address};
    CamLoginClaim claim;
    CamLogin login = cam_access_check(access, &request, 0, &claim);

    cam_login_claim_clear(&claim);
    return login;
}

static void test_addresses(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);

    lock(access, NULL, "2001:db8::/64");
    g_assert_cmpint(from(access, "2001:db8::5"), ==, CAM_LOGIN_LOCKED);
    g_assert_cmpint(from(access, "2001:db8:0:1::5"), ==, CAM_LOGIN_WRONG);
    lock(access, NULL, "192.0.2.1");
    g_assert_cmpint(from(access, "192.0.2.1"), ==, CAM_LOGIN_LOCKED);
    g_assert_cmpint(from(access, "::ffff:192.0.2.1"), ==, CAM_LOGIN_LOCKED);
    g_assert_cmpint(from(access, "192.0.2.2"), ==, CAM_LOGIN_WRONG);
    lock(access, NULL, "fe80::/10");
    g_assert_cmpint(from(access, "fe80::1%eth0"), ==, CAM_LOGIN_LOCKED);
    g_assert_cmpint(from(access, "no address"), ==, CAM_LOGIN_WRONG);
    cam_access_free(access);
}

static void test_cameras(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);

    g_assert_true(cam_access_may_watch(access, "admin", 0));
    g_assert_true(cam_access_may_watch(access, "guest", 3));
    g_assert_false(cam_access_may_watch(access, "guest", 0));
    g_assert_false(cam_access_may_watch(access, "nobody", 3));
    cam_access_free(access);
}

static void test_same_users(void)
{
    CamAccess *access = make_access(CAM_BASIC_NEVER);
    GHashTable *users = make_users(), *same;
    CamRtspUser *guest = g_hash_table_lookup(users, "guest");
    int other = 4;

    g_array_append_val(guest->cameras, other);
    same = cam_access_set_users(access, users);
    g_assert_true(g_hash_table_contains(same, "admin"));
    g_assert_false(g_hash_table_contains(same, "guest"));
    g_hash_table_unref(same);
    cam_access_free(access);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/access/algorithms", test_algorithms);
    g_test_add_func("/access/challenges", test_challenges);
    g_test_add_func("/access/nonces", test_nonces);
    g_test_add_func("/access/many-nonces", test_many_nonces);
    g_test_add_func("/access/basic", test_basic);
    g_test_add_func("/access/lockout", test_lockout);
    g_test_add_func("/access/addresses", test_addresses);
    g_test_add_func("/access/cameras", test_cameras);
    g_test_add_func("/access/same-users", test_same_users);
    return g_test_run();
}
