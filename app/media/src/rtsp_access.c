#include "rtsp_access.h"
#include "rtsp_digest.h"

#include <gio/gio.h>
#include <string.h>
#include <sys/random.h>

#define NONCE_LIFETIME_US (300 * G_USEC_PER_SEC)
/* Nonces with which somebody has logged in. */
#define MAX_COUNTS 4096

struct _CamAccess {
    GMutex lock;
    char *realm;
    CamBasic basic;
    GHashTable *users;
    gboolean all_sha256;
    GHashTable *counts; /* nonce → the highest nonce count that was used */
    GHashTable *locked_users;
    GPtrArray *locked_addresses;
    guint8 key[CAM_NONCE_KEY_SIZE];
    /* Unknown users are checked against this, so that they take as long as known ones. */
    CamRtspUser *nobody;
};

CamRtspUser *cam_rtsp_user_new(const char *ha1_md5, const char *ha1_sha256)
{
    CamRtspUser *user = g_new0(CamRtspUser, 1);

    user->ha1_md5 = g_strdup(ha1_md5);
    user->ha1_sha256 = g_strdup(ha1_sha256);
    return user;
}

void cam_rtsp_user_free(CamRtspUser *user)
{
    g_free(user->ha1_md5);
    g_free(user->ha1_sha256);
    g_clear_pointer(&user->cameras, g_array_unref);
    g_free(user);
}

static gboolean same_cameras(const GArray *a, const GArray *b)
{
    if (!a || !b)
        return a == b;
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len * sizeof(int)) == 0);
}

static gboolean same_user(const CamRtspUser *a, const CamRtspUser *b)
{
    return g_str_equal(a->ha1_md5, b->ha1_md5) && g_strcmp0(a->ha1_sha256, b->ha1_sha256) == 0 &&
           same_cameras(a->cameras, b->cameras);
}

static void random_bytes(guint8 *bytes, gsize size)
{
    while (getrandom(bytes, size, 0) != (gssize)size)
        continue;
}

static CamRtspUser *nobody_new(void)
{
    guint8 secret[32];
    g_autofree char *md5 = NULL;
    g_autofree char *sha256 = NULL;

    random_bytes(secret, sizeof(secret));
    md5 = g_compute_checksum_for_data(G_CHECKSUM_MD5, secret, sizeof(secret));
    sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, secret, sizeof(secret));
    return cam_rtsp_user_new(md5, sha256);
}

CamAccess *cam_access_new(void)
{
    CamAccess *self = g_new0(CamAccess, 1);

    g_mutex_init(&self->lock);
    self->realm = g_strdup("camera");
    self->users = g_hash_table_new(g_str_hash, g_str_equal);
    self->all_sha256 = TRUE;
    self->counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->locked_users = g_hash_table_new(g_str_hash, g_str_equal);
    self->locked_addresses = g_ptr_array_new();
    random_bytes(self->key, sizeof(self->key));
    self->nobody = nobody_new();
    return self;
}

void cam_access_free(CamAccess *self)
{
    g_hash_table_unref(self->users);
    g_hash_table_unref(self->counts);
    g_hash_table_unref(self->locked_users);
    g_ptr_array_unref(self->locked_addresses);
    cam_rtsp_user_free(self->nobody);
    g_free(self->realm);
    g_mutex_clear(&self->lock);
    g_free(self);
}

void cam_access_configure(CamAccess *self, const char *realm, CamBasic basic)
{
    g_mutex_lock(&self->lock);
    g_free(self->realm);
    self->realm = g_strdup(realm);
    self->basic = basic;
    g_mutex_unlock(&self->lock);
}

GHashTable *cam_access_set_users(CamAccess *self, GHashTable *users)
{
    GHashTable *same = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gboolean all_sha256 = TRUE;
    GHashTableIter iter;
    gpointer name, value;

    g_mutex_lock(&self->lock);
    g_hash_table_iter_init(&iter, users);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        CamRtspUser *user = value, *before = g_hash_table_lookup(self->users, name);

        all_sha256 &= user->ha1_sha256 != NULL;
        if (before && same_user(before, user))
            g_hash_table_add(same, g_strdup(name));
    }
    g_hash_table_unref(self->users);
    self->users = users;
    self->all_sha256 = all_sha256;
    g_mutex_unlock(&self->lock);
    return same;
}

void cam_access_set_lockout(CamAccess *self, GHashTable *users, GPtrArray *addresses)
{
    g_mutex_lock(&self->lock);
    g_hash_table_unref(self->locked_users);
    g_ptr_array_unref(self->locked_addresses);
    self->locked_users = users;
    self->locked_addresses = addresses;
    g_mutex_unlock(&self->lock);
}

/* An IPv4 client of a listener for both is an IPv4 address; NULL when TEXT is none at all. */
static GInetAddress *parse_address(const char *text)
{
    g_autofree char *bare = g_strndup(text, strcspn(text, "%"));
    GInetAddress *address = g_inet_address_new_from_string(bare);
    static const guint8 mapped[12] = {[10] = 0xff, [11] = 0xff};
    const guint8 *bytes;
    GInetAddress *inner;

    if (!address || g_inet_address_get_family(address) != G_SOCKET_FAMILY_IPV6)
        return address;
    bytes = g_inet_address_to_bytes(address);
    if (memcmp(bytes, mapped, sizeof(mapped)) != 0)
        return address;
    inner = g_inet_address_new_from_bytes(bytes + sizeof(mapped), G_SOCKET_FAMILY_IPV4);
    g_object_unref(address);
    return inner;
}

/* With lock held. */
static gboolean is_locked(CamAccess *self, const char *user, const char *text)
{
    g_autoptr(GInetAddress) address = parse_address(text);
    gboolean locked = user && g_hash_table_contains(self->locked_users, user);

    for (guint i = 0; address && i < self->locked_addresses->len; i++)
        locked |= g_inet_address_mask_matches(self->locked_addresses->pdata[i], address);
    return locked;
}

/* With lock held. */
static const CamRtspUser *find_user(CamAccess *self, const char *name, gboolean *known)
{
    const CamRtspUser *user = g_hash_table_lookup(self->users, name);

    *known = user != NULL;
    return user ? user : self->nobody;
}

static gboolean expired(gpointer nonce, gpointer count, gpointer now)
{
    return cam_nonce_age(nonce, *(gint64 *)now) > NONCE_LIFETIME_US;
}

/* With lock held. A count that was used with this nonce before, on any connection, is a replay. */
static gboolean count_is_new(CamAccess *self, const CamDigest *digest, gint64 now)
{
    guint32 count = cam_digest_count(digest);

    if (!digest->qop)
        return TRUE;
    if (count <= GPOINTER_TO_UINT(g_hash_table_lookup(self->counts, digest->nonce)))
        return FALSE;
    if (g_hash_table_size(self->counts) >= MAX_COUNTS)
        g_hash_table_foreach_remove(self->counts, expired, &now);
    if (g_hash_table_size(self->counts) >= MAX_COUNTS)
        g_hash_table_remove_all(self->counts);
    g_hash_table_replace(self->counts, g_strdup(digest->nonce), GUINT_TO_POINTER(count));
    return TRUE;
}

/* FALSE: none that we offer. */
static gboolean algorithm_of(const CamDigest *digest, GChecksumType *hash)
{
    *hash = G_CHECKSUM_MD5;
    if (!digest->algorithm || g_ascii_strcasecmp(digest->algorithm, "MD5") == 0)
        return TRUE;
    *hash = G_CHECKSUM_SHA256;
    return g_ascii_strcasecmp(digest->algorithm, "SHA-256") == 0;
}

/* With lock held. */
static gboolean is_right(CamAccess *self, const CamLoginRequest *request, const CamDigest *digest)
{
    GChecksumType hash;
    gboolean known, right = algorithm_of(digest, &hash);
    const CamRtspUser *user = find_user(self, digest->username, &known);
    const char *ha1 = hash == G_CHECKSUM_MD5 ? user->ha1_md5 : user->ha1_sha256;
    g_autofree char *expected = NULL;

    right &= known & (ha1 != NULL);
    expected =
        cam_digest_response(hash, ha1 ? ha1 : self->nobody->ha1_sha256, request->method, digest);
    right &= cam_equal_constant_time(expected, digest->response);
    right &= g_str_equal(digest->realm, self->realm);
    right &= cam_digest_uri_matches(digest->uri, request->uri);
    right &= !digest->qop || (g_str_equal(digest->qop, "auth") && cam_digest_count(digest) > 0);
    return right;
}

/* With lock held. */
static CamLogin check_digest(CamAccess *self, const CamLoginRequest *request,
                             const char *parameters, gint64 now, CamLoginClaim *claim,
                             gboolean *judged)
{
    CamDigest digest;
    CamNonceState nonce;
    CamLogin login = CAM_LOGIN_WRONG;

    if (!cam_digest_parse(parameters, &digest))
        return CAM_LOGIN_WRONG;
    claim->user = g_strdup(digest.username);
    claim->nonce = g_strdup(digest.nonce);
    nonce = cam_nonce_check(self->key, digest.nonce, request->address, now, NONCE_LIFETIME_US);
    /* A connection that lives on may keep the nonce with which it began. */
    if (nonce == CAM_NONCE_STALE && g_strcmp0(request->logged_in_nonce, digest.nonce) == 0)
        nonce = CAM_NONCE_VALID;
    *judged = nonce != CAM_NONCE_FORGED;
    /* With a nonce that is not ours (of the process before this one, say) nothing can be judged. */
    if (nonce == CAM_NONCE_FORGED)
        login = CAM_LOGIN_STALE;
    else if (is_right(self, request, &digest))
        login = nonce == CAM_NONCE_VALID && count_is_new(self, &digest, now) ? CAM_LOGIN_OK
                                                                             : CAM_LOGIN_STALE;
    cam_digest_clear(&digest);
    return login;
}

/* With lock held. */
static gboolean basic_allowed(CamAccess *self, gboolean tls)
{
    return self->basic == CAM_BASIC_ALWAYS || (self->basic == CAM_BASIC_TLS && tls);
}

/* With lock held. */
static CamLogin check_basic(CamAccess *self, const CamLoginRequest *request,
                            const char *credentials, CamLoginClaim *claim)
{
    g_autofree char *password = NULL;
    g_autofree char *ha1 = NULL;
    gboolean known, right;

    if (!cam_basic_parse(credentials, &claim->user, &password))
        return CAM_LOGIN_WRONG;
    ha1 = cam_digest_ha1(G_CHECKSUM_MD5, claim->user, self->realm, password);
    right = cam_equal_constant_time(ha1, find_user(self, claim->user, &known)->ha1_md5) & known &
            basic_allowed(self, request->tls);
    return right ? CAM_LOGIN_OK : CAM_LOGIN_WRONG;
}

void cam_login_claim_clear(CamLoginClaim *claim)
{
    g_clear_pointer(&claim->user, g_free);
    g_clear_pointer(&claim->nonce, g_free);
}

CamLogin cam_access_check(CamAccess *self, const CamLoginRequest *request, gint64 now,
                          CamLoginClaim *claim)
{
    const char *header = request->authorization;
    CamLogin login = CAM_LOGIN_WRONG;
    gboolean judged = TRUE;

    *claim = (CamLoginClaim){0};
    if (!header)
        return CAM_LOGIN_NONE;
    g_mutex_lock(&self->lock);
    if (g_ascii_strncasecmp(header, "Digest ", 7) == 0)
        login = check_digest(self, request, header + 7, now, claim, &judged);
    else if (g_ascii_strncasecmp(header, "Basic ", 6) == 0)
        login = check_basic(self, request, header + 6, claim);
    /* Only now, so that it takes as long; who is in already goes on. */
    if (judged && is_locked(self, claim->user, request->address) &&
        (!claim->user || g_strcmp0(request->logged_in_user, claim->user) != 0))
        login = CAM_LOGIN_LOCKED;
    g_mutex_unlock(&self->lock);
    return login;
}

char **cam_access_challenges(CamAccess *self, const char *address, gboolean tls, gboolean stale,
                             gint64 now)
{
    /* Clients that do not look at the algorithm take the last (or only read the first, and answer
     * it with MD5): the nonce is the same in both. */
    static const char *const algorithms[] = {"SHA-256", "MD5"};
    g_autofree char *nonce = cam_nonce_new(self->key, address, now);
    GStrvBuilder *headers = g_strv_builder_new();
    char **values;

    g_mutex_lock(&self->lock);
    for (guint i = self->all_sha256 ? 0 : 1; i < G_N_ELEMENTS(algorithms); i++) {
        g_autofree char *digest =
            g_strdup_printf("Digest realm=\"%s\", nonce=\"%s\", algorithm=%s, qop=\"auth\"%s",
                            self->realm, nonce, algorithms[i], stale ? ", stale=true" : "");

        g_strv_builder_add(headers, digest);
    }
    if (basic_allowed(self, tls)) {
        g_autofree char *basic = g_strdup_printf("Basic realm=\"%s\"", self->realm);

        g_strv_builder_add(headers, basic);
    }
    g_mutex_unlock(&self->lock);
    values = g_strv_builder_end(headers);
    g_strv_builder_unref(headers);
    return values;
}

gboolean cam_access_may_watch(CamAccess *self, const char *name, int camera)
{
    const CamRtspUser *user;
    gboolean known, may;

    g_mutex_lock(&self->lock);
    user = find_user(self, name, &known);
    may = known && !user->cameras;
    for (guint i = 0; known && user->cameras && i < user->cameras->len; i++)
        may |= g_array_index(user->cameras, int, i) == camera;
    g_mutex_unlock(&self->lock);
    return may;
}
