/* Reading what a stranger may have written: a view of bytes that never reads beyond its end. Past
 * the end everything is zero and the view is marked. */
#pragma once

#include <glib.h>
#include <string.h>

typedef struct {
    const guint8 *data;
    gsize left;
    gboolean over; /* more was asked for than there was */
} CamBytes;

static inline const guint8 *cam_bytes_take(CamBytes *bytes, gsize n)
{
    static const guint8 zeros[8];
    const guint8 *data = bytes->data;

    if (n > bytes->left) {
        bytes->over = TRUE;
        bytes->left = 0;
        return n <= sizeof(zeros) ? zeros : NULL;
    }
    bytes->data += n;
    bytes->left -= n;
    return data;
}

static inline void cam_bytes_skip(CamBytes *bytes, gsize n)
{
    cam_bytes_take(bytes, n);
}

/* The next N bytes as a view of their own, shorter where there are fewer. */
static inline CamBytes cam_bytes_part(CamBytes *bytes, gsize n)
{
    CamBytes part = {bytes->data, MIN(n, bytes->left), FALSE};

    cam_bytes_skip(bytes, n);
    return part;
}

static inline guint8 cam_bytes_u8(CamBytes *bytes)
{
    return *cam_bytes_take(bytes, 1);
}

static inline guint16 cam_bytes_be16(CamBytes *bytes)
{
    const guint8 *p = cam_bytes_take(bytes, 2);

    return (guint16)(p[0] << 8 | p[1]);
}

static inline guint32 cam_bytes_be32(CamBytes *bytes)
{
    const guint8 *p = cam_bytes_take(bytes, 4);

    return (guint32)p[0] << 24 | (guint32)p[1] << 16 | (guint32)p[2] << 8 | p[3];
}

static inline guint64 cam_bytes_be64(CamBytes *bytes)
{
    guint64 high = cam_bytes_be32(bytes);

    return high << 32 | cam_bytes_be32(bytes);
}

static inline guint16 cam_bytes_le16(CamBytes *bytes)
{
    const guint8 *p = cam_bytes_take(bytes, 2);

    return (guint16)(p[1] << 8 | p[0]);
}

static inline guint32 cam_bytes_le32(CamBytes *bytes)
{
    const guint8 *p = cam_bytes_take(bytes, 4);

    return (guint32)p[3] << 24 | (guint32)p[2] << 16 | (guint32)p[1] << 8 | p[0];
}
