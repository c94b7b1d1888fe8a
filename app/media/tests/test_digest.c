#include "rtsp_digest.h"

#include <string.h>

/* RFC 2617, section 3.5. */
static void test_rfc2617(void)
{
    g_autofree char *ha1 =
        cam_digest_ha1(G_CHECKSUM_MD5, "Mufasa", "testrealm@host.com", "Circle Of Life");
    g_autofree char *response = NULL;
    CamDigest digest;

    g_assert_cmpstr(ha1, ==, "939e7578ed9e3c518a452acee763bce9");
    g_assert_true(cam_digest_parse("username=\"Mufasa\", realm=\"testrealm@host.com\", "
                                   "nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", "
                                   "uri=\"/dir/index.html\", qop=auth, nc=00000001, "
                                   "cnonce=\"0a4f113b\", "
                                   "response=\"6629fae49393a05397450978507c4ef1\", "
                                   "opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"",
                                   &digest));
    response = cam_digest_response(G_CHECKSUM_MD5, ha1, "GET", &digest);
    g_assert_cmpstr(response, ==, digest.response);
    cam_digest_clear(&digest);
}

/* RFC 7616, section 3.9.1: the same request with both hashes. */
static void check_rfc7616(GChecksumType hash, const char *expected)
{
    g_autofree char *ha1 =
        cam_digest_ha1(hash, "Mufasa", "http-auth@example.org", "Circle of Life");
    CamDigest digest = {.nonce = (char *)"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
                        .uri = (char *)"/dir/index.html",
                        .qop = (char *)"auth",
                        .nc = (char *)"00000001",
                        .cnonce = (char *)"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"};
    g_autofree char *response = cam_digest_response(hash, ha1, "GET", &digest);

    g_assert_cmpstr(response, ==, expected);
}

static void test_rfc7616(void)
{
    check_rfc7616(G_CHECKSUM_MD5, "8ca523f5e9506fed4657c9700eebdbec");
    check_rfc7616(G_CHECKSUM_SHA256,
                  "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1");
}

/* RFC 2069 clients send no qop: H(HA1:nonce:HA2). */
static void test_without_qop(void)
{
    CamDigest digest = {.nonce = (char *)"n", .uri = (char *)"u"};
    g_autofree char *ha2 = g_compute_checksum_for_string(G_CHECKSUM_MD5, "PLAY:u", -1);
    g_autofree char *text = g_strconcat("ha1:n:", ha2, NULL);
    g_autofree char *expected = g_compute_checksum_for_string(G_CHECKSUM_MD5, text, -1);
    g_autofree char *response = cam_digest_response(G_CHECKSUM_MD5, "ha1", "PLAY", &digest);

    g_assert_cmpstr(response, ==, expected);
}

static void test_parse(void)
{
    static const char *const bad[] = {
        "",
        "=",
        "username",
        "username=\"a",
        "username=\"a\"",
        "username=a realm=b, nonce=c, uri=d, response=e",
        "username=a, username=b, realm=r, nonce=c, uri=d, response=e",
        "username=a, realm=b, nonce=c, uri=d, response=e, qop=auth",
        "username=a, realm=b, nonce=c, uri=d, response=\"e\"x",
    };
    CamDigest digest;

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(cam_digest_parse(bad[i], &digest));
    g_assert_true(cam_digest_parse(" USERNAME=\"a\\\"b, c\" ,realm=r,nonce=n , uri=\"u\","
                                   "response=x,unknown=\"y, z\"",
                                   &digest));
    g_assert_cmpstr(digest.username, ==, "a\"b, c");
    g_assert_cmpstr(digest.realm, ==, "r");
    g_assert_cmpstr(digest.response, ==, "x");
    cam_digest_clear(&digest);
}

static void test_basic(void)
{
    char *user = NULL, *password = NULL;

    g_assert_true(cam_basic_parse("QWxhZGRpbjpvcGVuOnNlc2FtZQ==", &user, &password));
    g_assert_cmpstr(user, ==, "Aladdin");
    g_assert_cmpstr(password, ==, "open:sesame");
    g_free(user);
    g_free(password);
    g_assert_false(cam_basic_parse("", &user, &password));
    g_assert_false(cam_basic_parse("!!!!", &user, &password));
    g_assert_false(cam_basic_parse("QWxhZGRpbg==", &user, &password));
    /* A NUL inside. */
    g_assert_false(cam_basic_parse("YQBiOmM=", &user, &password));
}

static void test_constant_time(void)
{
    g_assert_true(cam_equal_constant_time("abc", "abc"));
    g_assert_false(cam_equal_constant_time("abc", "abd"));
    g_assert_false(cam_equal_constant_time("abc", "ab"));
    g_assert_false(cam_equal_constant_time("abc", ""));
    g_assert_false(cam_equal_constant_time("", ""));
    g_assert_false(cam_equal_constant_time(NULL, "a"));
    g_assert_false(cam_equal_constant_time("a", NULL));
}

static void test_uri(void)
{
    const char *request = "rtsp://10.0.0.1:554/cam/1/stream1/stream=0";

    g_assert_true(cam_digest_uri_matches(request, request));
    g_assert_true(cam_digest_uri_matches("/cam/1/stream1/stream=0", request));
    g_assert_true(cam_digest_uri_matches("rtsp://other/cam/1/stream1?tcp", request));
    g_assert_true(cam_digest_uri_matches("rtsp://other/cam/1/stream1/", request));
    g_assert_false(cam_digest_uri_matches("rtsp://10.0.0.1/cam/1/stream", request));
    g_assert_false(cam_digest_uri_matches("rtsp://10.0.0.1/cam/2/stream1", request));
    g_assert_false(cam_digest_uri_matches("rtsp://10.0.0.1/", request));
    g_assert_false(cam_digest_uri_matches("rtsp://10.0.0.1", request));
    g_assert_false(cam_digest_uri_matches("", request));
}

static void test_nonce(void)
{
    guint8 key[CAM_NONCE_KEY_SIZE] = {1, 2, 3}, other[CAM_NONCE_KEY_SIZE] = {4};
    g_autofree char *nonce = cam_nonce_new(key, "10.0.0.1", 1000);

    g_assert_cmpint(cam_nonce_check(key, nonce, "10.0.0.1", 1500, 1000), ==, CAM_NONCE_VALID);
    g_assert_cmpint(cam_nonce_check(key, nonce, "10.0.0.1", 2500, 1000), ==, CAM_NONCE_STALE);
    g_assert_cmpint(cam_nonce_check(other, nonce, "10.0.0.1", 1500, 1000), ==, CAM_NONCE_FORGED);
    g_assert_cmpint(cam_nonce_check(key, "", "10.0.0.1", 1500, 1000), ==, CAM_NONCE_FORGED);
    /* An older nonce with a newer time. */
    nonce[10] = nonce[10] == '0' ? '1' : '0';
    g_assert_cmpint(cam_nonce_check(key, nonce, "10.0.0.1", 1500, 1000), ==, CAM_NONCE_FORGED);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/digest/rfc2617", test_rfc2617);
    g_test_add_func("/digest/rfc7616", test_rfc7616);
    g_test_add_func("/digest/without-qop", test_without_qop);
    g_test_add_func("/digest/parse", test_parse);
    g_test_add_func("/digest/basic", test_basic);
    g_test_add_func("/digest/constant-time", test_constant_time);
    g_test_add_func("/digest/uri", test_uri);
    g_test_add_func("/digest/nonce", test_nonce);
    return g_test_run();
}
