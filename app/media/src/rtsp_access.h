/* Who may watch what over RTSP: the table of users, Digest and Basic, lockout. Knows no connection,
 * only what one says. Thread-safe. */
#pragma once

#include <glib.h>

typedef struct _CamAccess CamAccess;

typedef enum { CAM_BASIC_NEVER, CAM_BASIC_TLS, CAM_BASIC_ALWAYS } CamBasic;

typedef struct {
    char *ha1_md5;
    char *ha1_sha256; /* NULL: not known */
    GArray *cameras;  /* of int; NULL: all */
} CamRtspUser;

CamRtspUser *cam_rtsp_user_new(const char *ha1_md5, const char *ha1_sha256);
void cam_rtsp_user_free(CamRtspUser *user);

CamAccess *cam_access_new(void);
void cam_access_free(CamAccess *access);

void cam_access_configure(CamAccess *access, const char *realm, CamBasic basic);
/* Takes USERS, name → CamRtspUser. Returns the names that are as they were: name → name. */
GHashTable *cam_access_set_users(CamAccess *access, GHashTable *users);
/* Takes both: names (a set), and GInetAddressMasks. */
void cam_access_set_lockout(CamAccess *access, GHashTable *users, GPtrArray *addresses);

typedef enum {
    CAM_LOGIN_OK,
    CAM_LOGIN_NONE,  /* no credentials were sent */
    CAM_LOGIN_STALE, /* nothing is wrong but the nonce */
    CAM_LOGIN_WRONG,
    CAM_LOGIN_LOCKED, /* looks like WRONG from outside */
} CamLogin;

typedef struct {
    const char *authorization; /* the header's value; NULL: none */
    const char *method, *uri;
    const char *address; /* of the client */
    gboolean tls;
    /* What the connection has logged in with before; NULL: nothing. */
    const char *logged_in_user, *logged_in_nonce;
} CamLoginRequest;

typedef struct {
    char *user, *nonce; /* as claimed; NULL: none */
} CamLoginClaim;

void cam_login_claim_clear(CamLoginClaim *claim);

/* NOW is monotonic, in µs. Fills CLAIM (clear it). */
CamLogin cam_access_check(CamAccess *access, const CamLoginRequest *request, gint64 now,
                          CamLoginClaim *claim);

/* The values of the WWW-Authenticate headers, best first. */
char **cam_access_challenges(CamAccess *access, const char *address, gboolean tls, gboolean stale,
                             gint64 now);

gboolean cam_access_may_watch(CamAccess *access, const char *user, int camera);
