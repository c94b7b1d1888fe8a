/* AVI: whole chunks, each handed to the kernel at once; the header's figures follow twice a second,
 * the index comes at the end. */
#include "avi_header.h"
#include "container_private.h"
#include "log.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEADER_INTERVAL_US (400 * 1000)
#define KEY_FRAME 0x10u

typedef struct {
    GstBuffer *unit;
    gboolean audio;
} Chunk;

typedef struct {
    CamContainer base;
    GThread *thread;
    GQueue chunks; /* with base.lock held, as the next two */
    gsize queued;
    gboolean ending;

    /* The writer's alone. */
    CamAviTotals totals;
    GByteArray *index;
    guint32 movi_offset;
    gint64 header_at;
} CamAvi;

static gboolean write_all(CamAvi *self, const struct iovec *parts, int n, guint64 offset)
{
    gsize size = 0;
    gssize done;

    for (int i = 0; i < n; i++)
        size += parts[i].iov_len;
    do
        done = pwritev(cam_synced_file_fd(self->base.file), parts, n, (off_t)offset);
    while (done < 0 && errno == EINTR);
    if (done == (gssize)size)
        return TRUE;
    if (done >= 0)
        errno = ENOSPC; /* a regular file takes less only when there is no more room */
    return FALSE;
}

static gboolean write_header(CamAvi *self)
{
    g_autoptr(GByteArray) header = cam_avi_header(&self->base.format, &self->totals);

    self->movi_offset = cam_avi_movi_offset(header);
    self->header_at = g_get_monotonic_time();
    return write_all(self, &(struct iovec){header->data, header->len}, 1, 0);
}

static void break_off(CamAvi *self)
{
    int number = errno;

    /* What was begun is no chunk. */
    if (ftruncate(cam_synced_file_fd(self->base.file), (off_t)self->totals.movi_end) == 0)
        self->totals.file_end = self->totals.movi_end;
    cam_container_fail(&self->base, number == ENOSPC || number == EDQUOT, g_strerror(number));
}

static gboolean write_chunk(CamAvi *self, const char *tag, const guint8 *data, gsize size,
                            guint32 flags)
{
    static const guint8 padding = 0;
    guint32 length = GUINT32_TO_LE((guint32)size);
    struct iovec parts[] = {
        {(void *)tag, 4}, {&length, 4}, {(void *)data, size}, {(void *)&padding, size % 2}};

    if (!write_all(self, parts, G_N_ELEMENTS(parts), self->totals.movi_end)) {
        break_off(self);
        return FALSE;
    }
    cam_avi_put_tag(self->index, tag);
    cam_avi_put32(self->index, flags);
    cam_avi_put32(self->index, (guint32)(self->totals.movi_end - self->movi_offset));
    cam_avi_put32(self->index, (guint32)size);
    self->totals.movi_end += 8 + size + size % 2;
    self->totals.file_end = self->totals.movi_end;
    return TRUE;
}

/* AVI has no times: a picture's place is its number. */
static gboolean fill_up_to(CamAvi *self, GstClockTime pts)
{
    guint64 slot =
        gst_util_uint64_scale_round(pts, (guint64)self->base.format.video.fps, GST_SECOND);

    while (self->totals.frames < slot) {
        if (!write_chunk(self, "00dc", NULL, 0, 0))
            return FALSE;
        self->totals.frames++;
    }
    return TRUE;
}

static gboolean write_unit(CamAvi *self, const Chunk *chunk)
{
    gboolean key = !GST_BUFFER_FLAG_IS_SET(chunk->unit, GST_BUFFER_FLAG_DELTA_UNIT);
    GstMapInfo map;
    gboolean written;

    if (!chunk->audio && !fill_up_to(self, GST_BUFFER_PTS(chunk->unit)))
        return FALSE;
    if (!gst_buffer_map(chunk->unit, &map, GST_MAP_READ))
        return TRUE;
    written = write_chunk(self, chunk->audio ? "01wb" : "00dc", map.data, map.size,
                          key || chunk->audio ? KEY_FRAME : 0);
    if (written && chunk->audio) {
        self->totals.audio_units++;
        self->totals.audio_bytes += map.size;
        self->totals.largest_audio = MAX(self->totals.largest_audio, (guint32)map.size);
    } else if (written) {
        self->totals.frames++;
        self->totals.largest_frame = MAX(self->totals.largest_frame, (guint32)map.size);
    }
    gst_buffer_unmap(chunk->unit, &map);
    return written;
}

/* The next chunk, or NULL: it is over. Writes the header's figures meanwhile. */
static gboolean next_chunk(CamAvi *self, Chunk *chunk)
{
    Chunk *head;

    g_mutex_lock(&self->base.lock);
    while (g_queue_is_empty(&self->chunks) && !self->ending)
        g_cond_wait(&self->base.changed, &self->base.lock);
    head = g_queue_pop_head(&self->chunks);
    if (head) {
        *chunk = *head;
        g_free(head);
        self->queued -= gst_buffer_get_size(chunk->unit);
    }
    g_mutex_unlock(&self->base.lock);
    return head != NULL;
}

/* Without room for the index the file goes without, which players bear. */
static void write_end(CamAvi *self)
{
    guint8 head[8] = "idx1";
    guint32 size = GUINT32_TO_LE(self->index->len);
    struct iovec parts[] = {{head, sizeof(head)}, {self->index->data, self->index->len}};

    memcpy(head + 4, &size, sizeof(size));
    if (write_all(self, parts, G_N_ELEMENTS(parts), self->totals.movi_end))
        self->totals.file_end = self->totals.movi_end + sizeof(head) + self->index->len;
    else if (ftruncate(cam_synced_file_fd(self->base.file), (off_t)self->totals.movi_end) != 0)
        cam_log(CAM_LOG_ERROR, "recorder", "the index of an AVI: %s", g_strerror(errno));
    write_header(self);
}

static gpointer write_loop(gpointer data)
{
    CamAvi *self = data;
    gboolean working = write_header(self);
    Chunk chunk;

    self->totals.movi_end = self->totals.file_end = self->movi_offset + 4;
    if (!working)
        break_off(self);
    while (next_chunk(self, &chunk)) {
        working = working && write_unit(self, &chunk);
        gst_buffer_unref(chunk.unit);
        if (working && g_get_monotonic_time() - self->header_at >= HEADER_INTERVAL_US)
            write_header(self);
    }
    write_end(self);
    cam_container_ended(&self->base);
    return NULL;
}

static void avi_begin(CamContainer *base, const char *path)
{
    CamAvi *self = (CamAvi *)base;

    self->thread = g_thread_new("avi-writer", write_loop, self);
}

static gboolean push(CamContainer *base, GstBuffer *unit, gboolean audio)
{
    CamAvi *self = (CamAvi *)base;
    Chunk *chunk = g_new(Chunk, 1);

    *chunk = (Chunk){unit, audio};
    g_mutex_lock(&base->lock);
    g_queue_push_tail(&self->chunks, chunk);
    self->queued += gst_buffer_get_size(unit);
    g_cond_broadcast(&base->changed);
    g_mutex_unlock(&base->lock);
    return TRUE;
}

static gboolean avi_push_video(CamContainer *base, GstBuffer *unit)
{
    return push(base, unit, FALSE);
}

static gboolean avi_push_audio(CamContainer *base, GstBuffer *unit)
{
    return push(base, unit, TRUE);
}

static gsize avi_queued(CamContainer *base)
{
    gsize bytes;

    g_mutex_lock(&base->lock);
    bytes = ((CamAvi *)base)->queued;
    g_mutex_unlock(&base->lock);
    return bytes;
}

static void avi_end(CamContainer *base)
{
    g_mutex_lock(&base->lock);
    ((CamAvi *)base)->ending = TRUE;
    g_cond_broadcast(&base->changed);
    g_mutex_unlock(&base->lock);
}

static void avi_stop(CamContainer *base)
{
    g_thread_join(((CamAvi *)base)->thread);
}

static void avi_free(CamContainer *base)
{
    CamAvi *self = (CamAvi *)base;

    g_byte_array_unref(self->index);
    g_free(self);
}

static const CamContainerClass avi_class = {
    .begin = avi_begin,
    .push_video = avi_push_video,
    .push_audio = avi_push_audio,
    .queued = avi_queued,
    .end = avi_end,
    .stop = avi_stop,
    .free = avi_free,
};

CamContainer *cam_avi_new(void)
{
    CamAvi *self = g_new0(CamAvi, 1);

    self->base.klass = &avi_class;
    g_queue_init(&self->chunks);
    self->index = g_byte_array_new();
    return &self->base;
}
