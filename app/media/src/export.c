#include "export.h"
#include "log.h"
#include "media_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gst/app/gstappsrc.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define QUEUE_BYTES (4u << 20)
#define PROGRESS_US (250 * 1000)
#define EOS_TIMEOUT_US (600 * G_USEC_PER_SEC)
#define NO_SPACE_BYTES (1u << 20)

typedef struct {
    const CamExportSetup *setup;
    CamExportResult *result;
    char *temporary; /* of the muxer */
    GstElement *pipeline;
    GstBus *bus;
    GstAppSrc *source[CAM_N_TRACKS];
    /* Of the first part; the others must be the same. */
    CamTrack like[CAM_N_TRACKS];
    GstClockTime base; /* where the next part begins */
    guint64 done_ms, total_ms;
    gint64 told_at;
} Export;

/* What one part gives: units from … to, before to. */
typedef struct {
    CamMediaFile *file;
    guint next[CAM_N_TRACKS];
    GstClockTime start, end; /* of the cut, in the file's time */
} Cut;

static gboolean fail(Export *self, CamExportOutcome outcome, const char *message)
{
    if (self->result->outcome == CAM_EXPORT_DONE) {
        self->result->outcome = outcome;
        self->result->message = g_strdup(message);
    }
    return FALSE;
}

static gboolean is_full(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    struct statvfs info;

    return statvfs(folder, &info) == 0 && (guint64)info.f_bavail * info.f_frsize < NO_SPACE_BYTES;
}

static gboolean fail_io(Export *self, int error_number)
{
    if (self->result->outcome == CAM_EXPORT_DONE)
        self->result->error_number = error_number;
    return fail(self, CAM_EXPORT_IO, g_strerror(error_number));
}

/* TRUE while all is well. */
static gboolean check(Export *self)
{
    GstMessage *message;
    g_autoptr(GError) error = NULL;

    if (g_atomic_int_get(self->setup->cancel))
        return fail(self, CAM_EXPORT_CANCELLED, "cancelled");
    message = gst_bus_pop_filtered(self->bus, GST_MESSAGE_ERROR);
    if (!message)
        return TRUE;
    gst_message_parse_error(message, &error, NULL);
    gst_message_unref(message);
    if (g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT) ||
        (error->domain == GST_RESOURCE_ERROR && is_full(self->setup->path)))
        return fail_io(self, ENOSPC);
    if (error->domain == GST_RESOURCE_ERROR)
        return fail_io(self, EIO);
    return fail(self, CAM_EXPORT_UNSUPPORTED, error->message);
}

static GstElement *add(Export *self, const char *factory)
{
    GstElement *element = gst_element_factory_make(factory, NULL);

    if (element)
        gst_bin_add(GST_BIN(self->pipeline), element);
    return element;
}

static GstElement *add_aac_encoder(Export *self)
{
    static const char *const names[] = {"fdkaacenc", "voaacenc", "avenc_aac"};
    GstElement *element = NULL;

    for (guint i = 0; !element && i < G_N_ELEMENTS(names); i++)
        element = add(self, names[i]);
    return element;
}

/* Appends ELEMENT to the chain; FALSE: it is not installed, or does not fit. */
static gboolean append(GstElement **chain, GstElement *element)
{
    gboolean linked = element && gst_element_link(*chain, element);

    *chain = element;
    return linked;
}

static gboolean add_chain(Export *self, GstElement **chain, CamCodec codec)
{
    switch (codec) {
    case CAM_CODEC_H264:
        return append(chain, add(self, "h264parse"));
    case CAM_CODEC_H265:
        return append(chain, add(self, "h265parse"));
    case CAM_CODEC_AAC:
        return append(chain, add(self, "aacparse"));
    case CAM_CODEC_MP3:
        return append(chain, add(self, "mpegaudioparse"));
    case CAM_CODEC_PCM:
        return append(chain, add(self, "audioconvert")) &&
               append(chain, add(self, "audioresample")) && append(chain, add_aac_encoder(self)) &&
               append(chain, add(self, "aacparse"));
    default:
        return FALSE;
    }
}

static gboolean add_track(Export *self, GstElement *mux, CamTrackKind kind)
{
    const CamTrack *track = &self->like[kind];
    GstElement *chain = add(self, "appsrc");
    GstCaps *caps = cam_track_caps(track);
    GstPad *pad, *from;
    gboolean linked;

    self->source[kind] = GST_APP_SRC(chain);
    g_object_set(chain, "format", GST_FORMAT_TIME, "max-bytes", (guint64)0, "caps", caps, NULL);
    gst_caps_unref(caps);
    if (!add_chain(self, &chain, track->codec))
        return fail(self, CAM_EXPORT_UNSUPPORTED, "this cannot be put into an MP4 file here");
    pad = gst_element_request_pad_simple(mux, kind == CAM_TRACK_VIDEO ? "video_%u" : "audio_%u");
    /* Times come out as they went in. */
    if (kind == CAM_TRACK_VIDEO && track->time_scale >= 1000)
        g_object_set(pad, "trak-timescale", track->time_scale, NULL);
    from = gst_element_get_static_pad(chain, "src");
    linked = gst_pad_link(from, pad) == GST_PAD_LINK_OK;
    gst_object_unref(from);
    gst_object_unref(pad);
    return linked || fail(self, CAM_EXPORT_UNSUPPORTED, "this does not fit into an MP4 file");
}

static gboolean build(Export *self)
{
    GstElement *mux, *sink;

    self->pipeline = gst_object_ref_sink(gst_pipeline_new(NULL));
    self->bus = gst_pipeline_get_bus(GST_PIPELINE(self->pipeline));
    mux = add(self, "mp4mux");
    sink = add(self, "filesink");
    if (!mux || !sink)
        return fail(self, CAM_EXPORT_UNSUPPORTED, "a plugin is missing");
    g_object_set(mux, "faststart", TRUE, "faststart-file", self->temporary, NULL);
    g_object_set(sink, "location", self->setup->path, "sync", FALSE, "async", FALSE, NULL);
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        if (self->like[i].codec != CAM_CODEC_NONE && !add_track(self, mux, (CamTrackKind)i))
            return FALSE;
    }
    gst_element_link(mux, sink);
    gst_element_set_state(self->pipeline, GST_STATE_PLAYING);
    return TRUE;
}

static gboolean same_bytes(const GByteArray *a, const GByteArray *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static gboolean same_track(const CamTrack *a, const CamTrack *b)
{
    return a->codec == b->codec && a->width == b->width && a->height == b->height &&
           a->rate == b->rate && a->channels == b->channels &&
           same_bytes(a->parameter_sets, b->parameter_sets) &&
           same_bytes(a->codec_data, b->codec_data);
}

/* The first part decides what the file becomes. */
static gboolean take_first(Export *self, const CamMediaFile *file)
{
    if (file->track[CAM_TRACK_VIDEO].codec == CAM_CODEC_MJPEG)
        return fail(self, CAM_EXPORT_UNSUPPORTED, "Motion JPEG cannot be put into an MP4 file");
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        self->like[i] = file->track[i];
        self->like[i].units = NULL;
        g_byte_array_ref(self->like[i].parameter_sets);
        g_byte_array_ref(self->like[i].codec_data);
    }
    return build(self);
}

static gboolean open_cut(Export *self, const CamExportPart *part, Cut *cut)
{
    g_autofree char *message = NULL;
    const CamTrack *video;
    guint first;

    cut->file = cam_media_file_open(part->path, &message);
    if (!cut->file)
        return fail(self, CAM_EXPORT_UNSUPPORTED, message);
    if (!self->pipeline && !take_first(self, cut->file))
        return FALSE;
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        if (!same_track(&self->like[i], &cut->file->track[i]))
            return fail(self, CAM_EXPORT_UNSUPPORTED,
                        "the parts differ in size or codec, so they cannot become one file");
    }
    video = &cut->file->track[CAM_TRACK_VIDEO];
    first = cam_track_key_before(video, (GstClockTime)part->start_ms * GST_MSECOND);
    cut->next[CAM_TRACK_VIDEO] = first;
    cut->start = cam_track_time(video, g_array_index(video->units, CamUnit, first).pts);
    cut->end = cam_track_time(video, video->end);
    if (part->end_ms >= 0)
        cut->end = MIN(cut->end, (GstClockTime)part->end_ms * GST_MSECOND);
    cut->next[CAM_TRACK_AUDIO] = 0;
    return TRUE;
}

/* The next unit of a track that is within the cut; its time, or NONE at the end. */
static GstClockTime next_time(Cut *cut, CamTrackKind kind)
{
    const CamTrack *track = &cut->file->track[kind];

    if (track->codec == CAM_CODEC_NONE)
        return GST_CLOCK_TIME_NONE;
    for (; cut->next[kind] < track->units->len; cut->next[kind]++) {
        GstClockTime time =
            cam_track_time(track, g_array_index(track->units, CamUnit, cut->next[kind]).pts);

        if (time >= cut->end)
            break;
        if (time >= cut->start)
            return time;
    }
    return GST_CLOCK_TIME_NONE;
}

static void tell(Export *self, GstClockTime within)
{
    gint64 now = g_get_monotonic_time();
    gdouble done = (gdouble)self->done_ms + (gdouble)within / GST_MSECOND;

    if (now - self->told_at < PROGRESS_US)
        return;
    self->told_at = now;
    self->setup->progress(MIN(1.0, done / (gdouble)MAX(self->total_ms, 1u)),
                          self->setup->user_data);
}

static gboolean push(Export *self, Cut *cut, CamTrackKind kind)
{
    GstBuffer *unit = cam_media_file_read(cut->file, kind, cut->next[kind]++);

    if (!unit)
        return fail_io(self, EIO);
    GST_BUFFER_PTS(unit) = GST_BUFFER_PTS(unit) - cut->start + self->base;
    GST_BUFFER_DTS(unit) = GST_BUFFER_DTS(unit) > cut->start
                               ? GST_BUFFER_DTS(unit) - cut->start + self->base
                               : self->base;
    while (gst_app_src_get_current_level_bytes(self->source[kind]) > QUEUE_BYTES) {
        if (!check(self)) {
            gst_buffer_unref(unit);
            return FALSE;
        }
        g_usleep(2000);
    }
    gst_app_src_push_buffer(self->source[kind], unit);
    return TRUE;
}

/* Picture and sound in the order of their times, so that the muxer never waits for one of them. */
static gboolean push_cut(Export *self, Cut *cut)
{
    gboolean good = TRUE;

    while (good) {
        GstClockTime video = next_time(cut, CAM_TRACK_VIDEO);
        GstClockTime audio = next_time(cut, CAM_TRACK_AUDIO);

        if (!GST_CLOCK_TIME_IS_VALID(video) && !GST_CLOCK_TIME_IS_VALID(audio))
            break;
        good = push(self, cut, video <= audio ? CAM_TRACK_VIDEO : CAM_TRACK_AUDIO) && check(self);
        tell(self, MIN(video, audio) - cut->start);
    }
    if (cut->end > cut->start) {
        self->base += cut->end - cut->start;
        self->done_ms += (cut->end - cut->start) / GST_MSECOND;
    }
    return good;
}

static gboolean add_part(Export *self, const CamExportPart *part)
{
    Cut cut = {0};
    gboolean good = open_cut(self, part, &cut) && push_cut(self, &cut);

    g_clear_pointer(&cut.file, cam_media_file_free);
    return good;
}

static gboolean finish(Export *self)
{
    gint64 deadline = g_get_monotonic_time() + EOS_TIMEOUT_US;
    GstMessage *message = NULL;

    if (self->base == 0)
        return fail(self, CAM_EXPORT_UNSUPPORTED, "there is nothing in that range");
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        if (self->source[i])
            gst_app_src_end_of_stream(self->source[i]);
    }
    /* The muxer now puts the index in front, which copies the file. */
    while (!message && g_get_monotonic_time() < deadline) {
        if (!check(self))
            return FALSE;
        message = gst_bus_timed_pop_filtered(self->bus, 50 * GST_MSECOND, GST_MESSAGE_EOS);
    }
    if (!message)
        return fail_io(self, ETIMEDOUT);
    gst_message_unref(message);
    return TRUE;
}

static void close_pipeline(Export *self)
{
    if (!self->pipeline)
        return;
    gst_element_set_state(self->pipeline, GST_STATE_NULL);
    gst_object_unref(self->bus);
    gst_object_unref(self->pipeline);
}

static gboolean sync_path(const char *path, int flags, gint64 *size)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    struct stat info;
    gboolean good = fd >= 0 && fsync(fd) == 0 && fstat(fd, &info) == 0;
    int error_number = errno;

    if (good && size)
        *size = info.st_size;
    if (fd >= 0)
        close(fd);
    errno = error_number;
    return good;
}

static void settle(Export *self)
{
    g_autofree char *folder = g_path_get_dirname(self->setup->path);

    if (self->result->outcome == CAM_EXPORT_DONE &&
        (!sync_path(self->setup->path, 0, &self->result->size_bytes) ||
         !sync_path(folder, O_DIRECTORY, NULL)))
        fail_io(self, errno);
    unlink(self->temporary);
    if (self->result->outcome != CAM_EXPORT_DONE)
        unlink(self->setup->path);
    self->result->duration_ms = (gint64)(self->base / GST_MSECOND);
}

static void forget_first(Export *self)
{
    for (int i = 0; i < CAM_N_TRACKS; i++) {
        g_clear_pointer(&self->like[i].parameter_sets, g_byte_array_unref);
        g_clear_pointer(&self->like[i].codec_data, g_byte_array_unref);
    }
}

CamExportResult cam_export_run(const CamExportSetup *setup)
{
    CamExportResult result = {.outcome = CAM_EXPORT_DONE};
    Export self = {.setup = setup, .result = &result};
    int fd = open(setup->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    gboolean good = TRUE;

    if (fd < 0) {
        fail_io(&self, errno);
        return result;
    }
    close(fd);
    self.temporary = g_strconcat(setup->path, ".part", NULL);
    for (guint i = 0; i < setup->n_parts; i++) {
        const CamExportPart *part = &setup->parts[i];

        self.total_ms +=
            part->end_ms > part->start_ms ? (guint64)(part->end_ms - part->start_ms) : 0;
    }
    for (guint i = 0; good && i < setup->n_parts; i++)
        good = add_part(&self, &setup->parts[i]);
    if (good)
        finish(&self);
    close_pipeline(&self);
    settle(&self);
    forget_first(&self);
    g_free(self.temporary);
    return result;
}
