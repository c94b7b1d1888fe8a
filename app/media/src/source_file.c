/* A clip, played in a loop in real time. H.264 that could come from a camera (no reordering) is
 * handed on as it is, everything else is decoded. */
#include "log.h"
#include "source_gst.h"

#include <unistd.h>

#define PREROLL_TIMEOUT (10 * GST_SECOND)

typedef struct {
    CamGstSource gst;
    char *path;
    GThread *thread;
    GstBus *bus;
    gint has_video; /* atomic */
} CamFileSource;

static void link_pad(GstPad *pad, GstElement *element)
{
    GstPad *sink = gst_element_get_static_pad(element, "sink");

    gst_pad_link(pad, sink);
    gst_object_unref(sink);
}

/* What was added to a running pipeline catches up with it, from the end to the front. */
static void add_and_link(CamFileSource *self, GstPad *pad, GstElement *first, GstElement *second)
{
    gst_bin_add_many(GST_BIN(self->gst.pipeline), first, second, NULL);
    gst_element_link(first, second);
    gst_element_sync_state_with_parent(second);
    gst_element_sync_state_with_parent(first);
    link_pad(pad, first);
}

static gboolean is_video(GstPad *pad)
{
    GstCaps *caps = gst_pad_get_current_caps(pad);
    gboolean video;

    if (!caps)
        caps = gst_pad_query_caps(pad, NULL);
    video = !gst_caps_is_any(caps) && !gst_caps_is_empty(caps) &&
            g_str_has_prefix(gst_structure_get_name(gst_caps_get_structure(caps, 0)), "video/");
    gst_caps_unref(caps);
    return video;
}

static void on_decoded_pad(GstElement *decoder, GstPad *pad, gpointer user_data)
{
    CamFileSource *self = user_data;

    if (is_video(pad))
        add_and_link(self, pad, cam_gst_source_converter(FALSE),
                     cam_gst_source_sink(&self->gst, FALSE, TRUE));
}

/* Baseline has no B-frames, so its access units are in the order in which they are shown. */
static gboolean can_pass_through(GstPad *pad)
{
    GstCaps *caps = gst_pad_get_current_caps(pad);
    GstStructure *structure = caps ? gst_caps_get_structure(caps, 0) : NULL;
    const char *profile = structure ? gst_structure_get_string(structure, "profile") : NULL;
    gboolean can =
        structure && gst_structure_has_name(structure, "video/x-h264") && profile &&
        (g_str_equal(profile, "baseline") || g_str_equal(profile, "constrained-baseline"));

    gst_clear_caps(&caps);
    return can;
}

static void on_parsed_pad(GstElement *parser, GstPad *pad, gpointer user_data)
{
    CamFileSource *self = user_data;
    GstElement *decoder;

    if (!is_video(pad) || !g_atomic_int_compare_and_exchange(&self->has_video, FALSE, TRUE))
        return;
    if (can_pass_through(pad)) {
        add_and_link(self, pad, cam_gst_source_converter(TRUE),
                     cam_gst_source_sink(&self->gst, TRUE, TRUE));
        return;
    }
    decoder = gst_element_factory_make("decodebin", NULL);
    g_signal_connect(decoder, "pad-added", G_CALLBACK(on_decoded_pad), self);
    gst_bin_add(GST_BIN(self->gst.pipeline), decoder);
    gst_element_sync_state_with_parent(decoder);
    link_pad(pad, decoder);
}

static void on_no_more_pads(GstElement *parser, gpointer user_data)
{
    CamFileSource *self = user_data;

    if (!g_atomic_int_get(&self->has_video))
        cam_gst_source_fail(&self->gst, "the file has no video");
}

static gboolean build(CamFileSource *self)
{
    GstElement *source = gst_element_factory_make("filesrc", NULL);
    GstElement *parser = gst_element_factory_make("parsebin", NULL);
    GstClock *clock = gst_system_clock_obtain();

    self->gst.pipeline = gst_pipeline_new(NULL);
    gst_pipeline_use_clock(GST_PIPELINE(self->gst.pipeline), clock);
    gst_object_unref(clock);
    g_object_set(source, "location", self->path, NULL);
    gst_bin_add_many(GST_BIN(self->gst.pipeline), source, parser, NULL);
    g_signal_connect(parser, "pad-added", G_CALLBACK(on_parsed_pad), self);
    g_signal_connect(parser, "no-more-pads", G_CALLBACK(on_no_more_pads), self);
    self->bus = gst_pipeline_get_bus(GST_PIPELINE(self->gst.pipeline));
    return gst_element_link(source, parser);
}

/* A segment seek: at its end the next one follows without a gap in time. FLUSH: from anywhere. */
static gboolean rewind_to_start(CamFileSource *self, gboolean flush)
{
    return gst_element_seek(self->gst.pipeline, 1.0, GST_FORMAT_TIME,
                            GST_SEEK_FLAG_SEGMENT | (flush ? GST_SEEK_FLAG_FLUSH : 0),
                            GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0);
}

/* FALSE when the source has ended. */
static gboolean handle(CamFileSource *self, GstMessage *message)
{
    switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
        cam_gst_source_fail_with(&self->gst, message);
        return FALSE;
    case GST_MESSAGE_SEGMENT_DONE:
        if (rewind_to_start(self, FALSE))
            return TRUE;
        break;
    case GST_MESSAGE_EOS:
        if (rewind_to_start(self, TRUE))
            return TRUE;
        break;
    case GST_MESSAGE_APPLICATION: /* cam_source_free() */
        return FALSE;
    default:
        return TRUE;
    }
    cam_gst_source_fail(&self->gst, "the file cannot be played in a loop");
    return FALSE;
}

static gboolean run_until_prerolled(CamFileSource *self)
{
    const GstMessageType wanted =
        GST_MESSAGE_ERROR | GST_MESSAGE_ASYNC_DONE | GST_MESSAGE_APPLICATION;
    GstMessage *message;
    gboolean ready;

    gst_element_set_state(self->gst.pipeline, GST_STATE_PAUSED);
    message = gst_bus_timed_pop_filtered(self->bus, PREROLL_TIMEOUT, wanted);
    if (!message) {
        cam_gst_source_fail(&self->gst, "the file cannot be read");
        return FALSE;
    }
    ready = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ASYNC_DONE || handle(self, message);
    gst_message_unref(message);
    return ready;
}

static gpointer run(gpointer data)
{
    CamFileSource *self = data;
    gboolean going;

    if (access(self->path, R_OK) != 0) {
        cam_gst_source_fail(&self->gst, "the file cannot be opened");
        return NULL;
    }
    going = run_until_prerolled(self);
    if (going) {
        rewind_to_start(self, TRUE);
        gst_element_set_state(self->gst.pipeline, GST_STATE_PLAYING);
    }
    while (going) {
        GstMessage *message = gst_bus_timed_pop(self->bus, GST_CLOCK_TIME_NONE);

        going = handle(self, message);
        gst_message_unref(message);
    }
    return NULL;
}

static void file_free(CamSource *source)
{
    CamFileSource *self = (CamFileSource *)source;

    gst_bus_post(self->bus, gst_message_new_application(NULL, gst_structure_new_empty("stop")));
    g_thread_join(self->thread);
    gst_element_set_state(self->gst.pipeline, GST_STATE_NULL);
    gst_object_unref(self->bus);
    gst_object_unref(self->gst.pipeline);
    g_free(self->path);
    g_free(self);
}

static const CamSourceClass file_class = {.free = file_free};

CamSource *cam_source_file_new(const CamSourceSetup *setup)
{
    CamFileSource *self = g_new0(CamFileSource, 1);

    self->gst.base = (CamSource){&file_class, setup->events, setup->owner};
    self->gst.fallback_fps = setup->mode.fps;
    self->path = g_strdup(setup->spec->path);
    build(self);
    self->thread = g_thread_new("file-source", run, self);
    return &self->gst.base;
}
