#include "parameter_sets.h"

#define NAL_SLICE 1
#define NAL_IDR 5
#define NAL_SPS 7
#define NAL_PPS 8

/* The offset after the next start code at or after FROM, or SIZE. */
static gsize next_unit(const guint8 *data, gsize size, gsize from)
{
    for (gsize i = from; i + 3 <= size; i++) {
        if (data[i] == 0 && data[i + 1] == 0 && data[i + 2] == 1)
            return i + 3;
    }
    return size;
}

/* Without the zero bytes that belong to the next start code. */
static gsize unit_end(const guint8 *data, gsize start, gsize next, gsize size)
{
    gsize end = next == size ? size : next - 3;

    while (end > start && data[end - 1] == 0)
        end--;
    return end;
}

GBytes *cam_parameter_sets(GstBuffer *au)
{
    GByteArray *sets;
    GstMapInfo map;
    gsize start;

    if (!gst_buffer_map(au, &map, GST_MAP_READ))
        return NULL;
    sets = g_byte_array_new();
    start = next_unit(map.data, map.size, 0);
    while (start < map.size) {
        int type = map.data[start] & 0x1f;
        gsize next = next_unit(map.data, map.size, start);

        if (type >= NAL_SLICE && type <= NAL_IDR)
            break;
        if (type == NAL_SPS || type == NAL_PPS)
            g_byte_array_append(sets, map.data + start,
                                (guint)(unit_end(map.data, start, next, map.size) - start));
        start = next;
    }
    gst_buffer_unmap(au, &map);
    if (sets->len == 0) {
        g_byte_array_unref(sets);
        return NULL;
    }
    return g_byte_array_free_to_bytes(sets);
}
