#include "params_rtsp.h"

#include <string.h>

static JsonNode *parse(const char *text)
{
    GError *error = NULL;
    JsonNode *node = json_from_string(text, &error);

    g_assert_no_error(error);
    return node;
}

/* The field that reading TEXT with READ finds at fault, "" for none. */
static char *fault_of(const char *text, void (*read)(CamParams *params))
{
    static const char *const names[] = {"id",   "source", "mode",  "controls",  "streams", "encode",
                                        "path", "flag",   "users", "addresses", "audio",   NULL};
    JsonNode *node = parse(text);
    CamParamFault fault = {0};
    CamParams params = cam_params_open(json_node_get_object(node), "", names, &fault);
    char *field;

    read(&params);
    field = g_strdup(fault.field ? fault.field : "");
    g_assert_cmpint(fault.field != NULL, ==, fault.message != NULL);
    cam_param_fault_clear(&fault);
    json_node_unref(node);
    return field;
}

static void check(void (*read)(CamParams *params), const char *text, const char *expected)
{
    g_autofree char *field = fault_of(text, read);

    g_assert_cmpstr(field, ==, expected);
}

static void read_id(CamParams *params)
{
    cam_params_int(params, "id", 0, 100);
}

static void read_path(CamParams *params)
{
    cam_params_string(params, "path", 8);
}

static void read_flag(CamParams *params)
{
    cam_params_bool(params, "flag");
}

static void read_mode(CamParams *params)
{
    cam_params_mode(params, "mode");
}

static void read_source(CamParams *params)
{
    CamSourceSpec spec = cam_params_source(params, "source");

    cam_source_spec_clear(&spec);
}

static void read_audio(CamParams *params)
{
    g_auto(CamAudioSpec) spec = cam_params_audio(params, "audio");

    g_assert_cmpint(spec.type == CAM_AUDIO_ALSA, ==, spec.device != NULL);
}

static void test_audio(void)
{
    check(read_audio, "{}", "");
    check(read_audio, "{\"audio\": null}", "");
    check(read_audio, "{\"audio\": {\"type\": \"test\"}}", "");
    check(read_audio, "{\"audio\": {\"type\": \"alsa\", \"device\": \"hw:CARD=a_b,DEV=0\"}}", "");
    check(read_audio, "{\"audio\": {\"type\": \"alsa\"}}", "audio.device");
    check(read_audio, "{\"audio\": {\"type\": \"alsa\", \"device\": \"\"}}", "audio.device");
    check(read_audio, "{\"audio\": {\"type\": \"alsa\", \"device\": \"file:'|x'\"}}",
          "audio.device");
    check(read_audio, "{\"audio\": {\"type\": \"test\", \"device\": \"a\"}}", "audio.device");
    check(read_audio, "{\"audio\": {\"type\": \"pulse\"}}", "audio.type");
    check(read_audio, "{\"audio\": {}}", "audio.type");
    check(read_audio, "{\"audio\": {\"type\": \"test\", \"x\": 1}}", "audio.x");
    check(read_audio, "{\"audio\": \"test\"}", "audio");
}

static void read_controls(CamParams *params)
{
    cam_params_controls(params, "controls");
}

static void read_streams(CamParams *params)
{
    CamStreamConfig streams[CAM_MAX_STREAMS];

    cam_params_streams(params, "streams", streams);
}

static void read_encode(CamParams *params)
{
    cam_params_encode(params, "encode");
}

static void test_scalars(void)
{
    check(read_id, "{\"id\": 5}", "");
    check(read_id, "{}", "id");
    check(read_id, "{\"id\": 101}", "id");
    check(read_id, "{\"id\": -1}", "id");
    check(read_id, "{\"id\": 5.5}", "id");
    check(read_id, "{\"id\": \"5\"}", "id");
    check(read_id, "{\"id\": null}", "id");
    check(read_id, "{\"id\": [5]}", "id");
    check(read_id, "{\"id\": 5, \"idd\": 5}", "idd");
    check(read_path, "{\"path\": \"/a\"}", "");
    check(read_path, "{\"path\": \"\"}", "path");
    check(read_path, "{\"path\": \"123456789\"}", "path");
    check(read_path, "{\"path\": 1}", "path");
    check(read_flag, "{\"flag\": true}", "");
    check(read_flag, "{\"flag\": 1}", "flag");
}

static void test_mode(void)
{
    check(read_mode, "{\"mode\": {\"width\": 1280, \"height\": 720, \"fps\": 30}}", "");
    check(read_mode, "{\"mode\": {\"width\": 1281, \"height\": 720, \"fps\": 30}}", "mode.width");
    check(read_mode, "{\"mode\": {\"width\": 1280, \"height\": 4322, \"fps\": 30}}", "mode.height");
    check(read_mode, "{\"mode\": {\"width\": 1280, \"height\": 720, \"fps\": 0}}", "mode.fps");
    check(read_mode, "{\"mode\": {\"width\": 1280, \"height\": 720}}", "mode.fps");
    check(read_mode, "{\"mode\": {\"width\": 64, \"height\": 64, \"fps\": 1, \"x\": 1}}", "mode.x");
    check(read_mode, "{\"mode\": []}", "mode");
}

static void test_source(void)
{
    check(read_source, "{\"source\": {\"type\": \"test\"}}", "");
    check(read_source, "{\"source\": {\"type\": \"v4l2\", \"device\": \"/dev/video0\"}}", "");
    check(read_source, "{\"source\": {\"type\": \"file\", \"path\": \"/a\"}}", "");
    check(read_source, "{\"source\": {\"type\": \"file\", \"path\": \"a\"}}", "source.path");
    check(read_source, "{\"source\": {\"type\": \"file\"}}", "source.path");
    check(read_source, "{\"source\": {\"type\": \"test\", \"path\": \"/a\"}}", "source.path");
    check(read_source, "{\"source\": {\"type\": \"v4l2\", \"path\": \"/a\"}}", "source.path");
    check(read_source, "{\"source\": {\"type\": \"rtsp\"}}", "source.type");
    check(read_source, "{\"source\": {}}", "source.type");
}

static void test_composites(void)
{
    check(read_controls, "{\"controls\": {\"brightness\": 1, \"contrast\": 2, \"saturation\": 3}}",
          "");
    check(read_controls,
          "{\"controls\": {\"brightness\": 1, \"contrast\": 200, \"saturation\": 3}}",
          "controls.contrast");
    check(read_encode,
          "{\"encode\": {\"width\": 64, \"height\": 64, \"fps\": 5, \"bitrate_kbps\": 64}}", "");
    check(read_encode,
          "{\"encode\": {\"width\": 64, \"height\": 64, \"fps\": 5, \"bitrate_kbps\": 63}}",
          "encode.bitrate_kbps");
}

#define STREAM(name)                                                                               \
    "{\"name\": \"" name "\", \"width\": 64, \"height\": 64, \"fps\": 5, \"bitrate_kbps\": 64, "   \
    "\"gop\": 5}"

#define WITH_AUDIO(audio)                                                                          \
    "{\"name\": \"a\", \"width\": 64, \"height\": 64, \"fps\": 5, \"bitrate_kbps\": 64, \"gop\": " \
    "5, "                                                                                          \
    "\"audio\": " audio "}"

static void test_streams(void)
{
    check(read_streams, "{\"streams\": [" STREAM("a") "," STREAM("b-1_") "]}", "");
    check(read_streams, "{\"streams\": [" STREAM("a") "," STREAM("a") "]}", "streams[1].name");
    check(read_streams, "{\"streams\": [" STREAM("a/b") "]}", "streams[0].name");
    check(read_streams, "{\"streams\": [" STREAM("A") "]}", "streams[0].name");
    check(read_streams, "{\"streams\": [" STREAM("") "]}", "streams[0].name");
    check(read_streams, "{\"streams\": [" STREAM("abcdefghijabcdefghijabcdefghijabc") "]}",
          "streams[0].name");
    check(read_streams, "{\"streams\": [" WITH_AUDIO("null") "," STREAM("b") "]}", "");
    check(read_streams, "{\"streams\": [" WITH_AUDIO("\"pcmu\"") "]}", "");
    check(read_streams, "{\"streams\": [" WITH_AUDIO("\"mp3\"") "]}", "streams[0].audio");
    check(read_streams, "{\"streams\": [" WITH_AUDIO("\"\"") "]}", "streams[0].audio");
    check(read_streams, "{\"streams\": [" WITH_AUDIO("1") "]}", "streams[0].audio");
    check(read_streams, "{\"streams\": [1]}", "streams[0]");
    check(read_streams, "{\"streams\": []}", "streams");
    check(read_streams, "{\"streams\": [1, 2, 3, 4, 5]}", "streams");
}

static void read_users(CamParams *params)
{
    g_hash_table_unref(cam_params_rtsp_users(params, "users", 3));
}

#define MD5 "0123456789abcdef0123456789abcdef"
#define BOTH "\"ha1_md5\": \"" MD5 "\", \"ha1_sha256\": \"" MD5 MD5 "\""

static void test_users(void)
{
    check(read_users, "{\"users\": []}", "");
    check(read_users, "{\"users\": [{\"name\": \"a\", \"ha1\": \"" MD5 "\"}]}", "");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH "}]}", "");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"cameras\": null}]}", "");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"cameras\": [0, 5]}]}", "");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"cameras\": [-1]}]}",
          "users[0].cameras");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"cameras\": [\"0\"]}]}",
          "users[0].cameras");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"cameras\": [2147483648]}]}",
          "users[0].cameras");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"cameras\": {}}]}",
          "users[0].cameras");
    /* Not a mixture. */
    check(read_users, "{\"users\": [{\"name\": \"a\", \"ha1\": \"" MD5 "\", \"cameras\": []}]}",
          "users[0].cameras");
    check(read_users, "{\"users\": [{\"name\": \"a\", \"ha1_md5\": \"" MD5 "\"}]}", "");
    check(read_users,
          "{\"users\": [{\"name\": \"a\", \"ha1_md5\": \"" MD5 "\", \"ha1_sha256\": 1}]}",
          "users[0].ha1_sha256");
    check(read_users, "{\"users\": [{\"name\": \"a\", \"ha1_sha256\": \"" MD5 MD5 "\"}]}",
          "users[0].ha1_md5");
    check(read_users, "{\"users\": [{\"name\": \"a\", \"ha1\": \"" MD5 "0\"}]}", "users[0].ha1");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH ", \"x\": 1}]}", "users[0].x");
    check(read_users, "{\"users\": [{\"name\": \"a\", " BOTH "}, {\"name\": \"a\", " BOTH "}]}",
          "users[1].name");
    check(read_users, "{\"users\": [{" BOTH "}]}", "users[0].name");
    check(read_users, "{\"users\": [1]}", "users[0]");
    check(read_users, "{\"users\": [1, 2, 3, 4]}", "users");
}

static void read_lockout(CamParams *params)
{
    g_hash_table_unref(cam_params_names(params, "users", 2));
    g_ptr_array_unref(cam_params_addresses(params, "addresses", 2));
}

static void test_lockout(void)
{
    check(read_lockout, "{\"users\": [], \"addresses\": []}", "");
    check(read_lockout, "{\"users\": [\"a\"], \"addresses\": [\"1.2.3.4\", \"2001:db8::/64\"]}",
          "");
    check(read_lockout, "{\"users\": [\"\"], \"addresses\": []}", "users");
    check(read_lockout, "{\"users\": [1], \"addresses\": []}", "users");
    check(read_lockout, "{\"users\": [], \"addresses\": [\"1.2.3\"]}", "addresses");
    check(read_lockout, "{\"users\": [], \"addresses\": [\"1.2.3.4/33\"]}", "addresses");
    check(read_lockout, "{\"users\": [], \"addresses\": [\"1.2.3.4/24\"]}", "addresses");
    check(read_lockout, "{\"users\": [], \"addresses\": [\"2001:db8::/6465536\"]}", "addresses");
    check(read_lockout, "{\"users\": [], \"addresses\": [\"2001:db8::/\"]}", "addresses");
    check(read_lockout, "{\"users\": [], \"addresses\": [null]}", "addresses");
    check(read_lockout, "{\"users\": []}", "addresses");
}

static void test_absent_params(void)
{
    static const char *const names[] = {"id", NULL};
    CamParamFault fault = {0};
    CamParams params = cam_params_open(NULL, "", names, &fault);

    g_assert_null(fault.field);
    g_assert_cmpint(cam_params_int_or(&params, "id", 0, 5, 3), ==, 3);
    g_assert_null(fault.field);
    cam_params_int(&params, "id", 0, 5);
    g_assert_cmpstr(fault.field, ==, "id");
    cam_param_fault_clear(&fault);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/params/scalars", test_scalars);
    g_test_add_func("/params/mode", test_mode);
    g_test_add_func("/params/source", test_source);
    g_test_add_func("/params/audio", test_audio);
    g_test_add_func("/params/composites", test_composites);
    g_test_add_func("/params/streams", test_streams);
    g_test_add_func("/params/users", test_users);
    g_test_add_func("/params/lockout", test_lockout);
    g_test_add_func("/params/absent", test_absent_params);
    return g_test_run();
}
