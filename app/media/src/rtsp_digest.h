/* HTTP Digest (RFC 7616, RFC 2617) and Basic as pure functions. */
#pragma once

#include <glib.h>

typedef struct {
    char *username, *realm, *nonce, *uri, *response, *algorithm, *qop, *nc, *cnonce;
} CamDigest;

/* PARAMETERS is what follows "Digest". FALSE when it is malformed or lacks what is needed. */
gboolean cam_digest_parse(const char *parameters, CamDigest *digest);
void cam_digest_clear(CamDigest *digest);

/* H(user:realm:password) in hex. */
char *cam_digest_ha1(GChecksumType hash, const char *user, const char *realm, const char *password);

/* The response that DIGEST should hold, with or without qop. */
char *cam_digest_response(GChecksumType hash, const char *ha1, const char *method,
                          const CamDigest *digest);

/* CREDENTIALS is what follows "Basic". */
gboolean cam_basic_parse(const char *credentials, char **user, char **password);

/* Takes the same time wherever they differ. NULL equals nothing. */
gboolean cam_equal_constant_time(const char *a, const char *b);

/* The digest's uri speaks of REQUEST_URI: the same path, or the address of the presentation that
 * the request's track belongs to. */
gboolean cam_digest_uri_matches(const char *digest_uri, const char *request_uri);

/* The nonce count; 0 when there is none or it is malformed. */
guint32 cam_digest_count(const CamDigest *digest);

/* Nonces carry the time of their making and are signed for one client address, so that none has to
 * be remembered. */
#define CAM_NONCE_KEY_SIZE 32
typedef enum { CAM_NONCE_VALID, CAM_NONCE_STALE, CAM_NONCE_FORGED } CamNonceState;
char *cam_nonce_new(const guint8 key[CAM_NONCE_KEY_SIZE], const char *address, gint64 now_us);
CamNonceState cam_nonce_check(const guint8 key[CAM_NONCE_KEY_SIZE], const char *nonce,
                              const char *address, gint64 now_us, gint64 lifetime_us);
/* How old an unforged nonce is, in µs. */
gint64 cam_nonce_age(const char *nonce, gint64 now_us);
