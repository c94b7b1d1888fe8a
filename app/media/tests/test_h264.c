#include "gop_cache.h"
#include "parameter_sets.h"

#include <string.h>

static GstBuffer *buffer_of(const char *data, gsize size)
{
    return gst_buffer_new_memdup(data, size);
}

static void test_parameter_sets(void)
{
    /* AUD, SPS, PPS, then a slice that looks as if it had another SPS inside. */
    static const char au[] = "\0\0\0\1\x09\x10\0\0\0\1\x67\x42\xc0\0\0\1\x68\xce\0\0\1\x65\x88"
                             "\0\0\1\x67\xff";
    static const char expected[] = "\x67\x42\xc0\x68\xce";
    GstBuffer *buffer = buffer_of(au, sizeof(au) - 1);
    GBytes *sets = cam_parameter_sets(buffer);

    g_assert_nonnull(sets);
    g_assert_cmpmem(g_bytes_get_data(sets, NULL), g_bytes_get_size(sets), expected,
                    sizeof(expected) - 1);
    g_bytes_unref(sets);
    gst_buffer_unref(buffer);
}

static void test_no_parameter_sets(void)
{
    static const char *const units[] = {"\0\0\1", "\0\0\1\x41\x9a", "abc"};
    static const gsize sizes[] = {3, 5, 3};

    for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
        GstBuffer *buffer = buffer_of(units[i], sizes[i]);

        g_assert_null(cam_parameter_sets(buffer));
        gst_buffer_unref(buffer);
    }
}

static void count_units(GstBuffer *au, gpointer user_data)
{
    (*(int *)user_data)++;
}

static void push(CamGopCache *cache, gboolean key, gsize size)
{
    GstBuffer *au = gst_buffer_new_allocate(NULL, size, NULL);

    if (!key)
        GST_BUFFER_FLAG_SET(au, GST_BUFFER_FLAG_DELTA_UNIT);
    cam_gop_cache_push(cache, au);
    gst_buffer_unref(au);
}

static int replayed(CamGopCache *cache)
{
    int n = 0;

    g_assert_cmpint(cam_gop_cache_replay(cache, count_units, &n), ==, n > 0);
    return n;
}

static void test_gop_cache(void)
{
    CamGopCache *cache = cam_gop_cache_new(1000);

    push(cache, FALSE, 10);
    g_assert_cmpint(replayed(cache), ==, 0);
    push(cache, TRUE, 100);
    push(cache, FALSE, 10);
    g_assert_cmpint(replayed(cache), ==, 2);
    push(cache, TRUE, 100);
    g_assert_cmpint(replayed(cache), ==, 1);
    /* Too large: forgotten, and its rest with it. */
    push(cache, FALSE, 2000);
    push(cache, FALSE, 10);
    g_assert_cmpint(replayed(cache), ==, 0);
    push(cache, TRUE, 100);
    g_assert_cmpint(replayed(cache), ==, 1);
    cam_gop_cache_free(cache);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/h264/parameter-sets", test_parameter_sets);
    g_test_add_func("/h264/no-parameter-sets", test_no_parameter_sets);
    g_test_add_func("/h264/gop-cache", test_gop_cache);
    return g_test_run();
}
