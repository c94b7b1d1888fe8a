/* A V4L2 camera: one explicit mode and the pipeline for just that. Caps negotiation is given no
 * choice, for what it picks differs from camera to camera. */
#include "log.h"
#include "source_gst.h"
#include "v4l2_controls.h"
#include "v4l2_modes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

typedef struct {
    CamGstSource gst;
    char *device;
    CamMode wanted;
    int fd; /* for the controls, beside the pipeline's own; -1: the device could not be opened */
    CamV4l2Controls *controls; /* the source's thread only */
    GThread *thread;
    GMutex lock; /* all below */
    GCond wake;
    CamControls values;
    gboolean changed, stopping;
} CamV4l2Source;

static GstCaps *mode_caps(const CamDeviceMode *mode)
{
    GstCaps *caps;

    if (mode->kind == CAM_FORMAT_H264)
        caps = gst_caps_new_empty_simple("video/x-h264");
    else if (mode->kind == CAM_FORMAT_MJPEG)
        caps = gst_caps_new_empty_simple("image/jpeg");
    else
        caps = gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING,
                                   cam_v4l2_raw_format(mode->fourcc), NULL);
    gst_caps_set_simple(caps, "width", G_TYPE_INT, mode->width, "height", G_TYPE_INT, mode->height,
                        "framerate", GST_TYPE_FRACTION, mode->fps_n, mode->fps_d, NULL);
    return caps;
}

static void set_format_name(CamV4l2Source *self, const CamDeviceMode *mode)
{
    const char *name = mode->kind == CAM_FORMAT_H264    ? "H264"
                       : mode->kind == CAM_FORMAT_MJPEG ? "MJPG"
                                                        : cam_v4l2_raw_format(mode->fourcc);

    g_strlcpy(self->gst.info.format, name, sizeof(self->gst.info.format));
}

static GstElement *jpeg_decoder(void)
{
    GstElement *decoder = gst_element_factory_make("jpegdec", NULL);

    /* USB cameras send a broken picture now and then; that is no reason to stop. */
    g_object_set(decoder, "max-errors", -1, NULL);
    return decoder;
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data)
{
    CamV4l2Source *self = user_data;

    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
        cam_gst_source_fail_with(&self->gst, message);
    else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS)
        cam_gst_source_fail(&self->gst, "the camera ended its stream");
    gst_message_unref(message);
    return GST_BUS_DROP;
}

/* v4l2src ! mode ! (jpegdec) ! converter ! appsink */
static gboolean build(CamV4l2Source *self, const CamDeviceMode *mode)
{
    gboolean native = mode->kind == CAM_FORMAT_H264;
    GstElement *source = gst_element_factory_make("v4l2src", NULL);
    GstElement *filter = gst_element_factory_make("capsfilter", NULL);
    GstElement *decoder = mode->kind == CAM_FORMAT_MJPEG ? jpeg_decoder() : NULL;
    GstElement *converter = cam_gst_source_converter(native);
    GstElement *sink = cam_gst_source_sink(&self->gst, native, FALSE);
    GstCaps *caps = mode_caps(mode);
    GstBus *bus;

    set_format_name(self, mode);
    /* Nothing converts it, so the frame would be the driver's own buffer. */
    self->gst.copy = g_str_equal(self->gst.info.format, "I420");
    g_object_set(source, "device", self->device, NULL);
    g_object_set(filter, "caps", caps, NULL);
    gst_caps_unref(caps);
    g_object_set(sink, "async", FALSE, NULL);
    gst_bin_add_many(GST_BIN(self->gst.pipeline), source, filter, converter, sink, NULL);
    if (decoder)
        gst_bin_add(GST_BIN(self->gst.pipeline), decoder);
    cam_pipeline_use_timeline(self->gst.pipeline);
    bus = gst_pipeline_get_bus(GST_PIPELINE(self->gst.pipeline));
    gst_bus_set_sync_handler(bus, on_message, self, NULL);
    gst_object_unref(bus);
    return decoder ? gst_element_link_many(source, filter, decoder, converter, sink, NULL)
                   : gst_element_link_many(source, filter, converter, sink, NULL);
}

/* FALSE: the source is to stop. WAIT: for values that are not applied yet. */
static gboolean take_values(CamV4l2Source *self, gboolean wait, CamControls *values)
{
    gboolean going;

    g_mutex_lock(&self->lock);
    while (wait && !self->changed && !self->stopping)
        g_cond_wait(&self->wake, &self->lock);
    *values = self->values;
    self->changed = FALSE;
    going = !self->stopping;
    g_mutex_unlock(&self->lock);
    return going;
}

static void take_controls(CamV4l2Source *self)
{
    CamControls values;

    self->controls = cam_v4l2_controls_new(self->fd);
    for (int i = 0; i < CAM_N_CONTROLS; i++)
        self->gst.info.hardware[i] = cam_v4l2_controls_has(self->controls, i);
    take_values(self, FALSE, &values);
    cam_v4l2_controls_apply(self->controls, &values);
}

static gboolean start(CamV4l2Source *self)
{
    const char *reason = "the device offers no format that is supported";
    g_autoptr(GArray) modes = cam_v4l2_modes(self->fd, &self->wanted, &reason);
    int choice =
        modes ? cam_mode_choose((CamDeviceMode *)(gpointer)modes->data, modes->len, &self->wanted)
              : -1;
    const CamDeviceMode *mode;

    if (choice < 0) {
        cam_gst_source_fail(&self->gst, reason);
        return FALSE;
    }
    mode = &g_array_index(modes, CamDeviceMode, choice);
    take_controls(self);
    if (!build(self, mode)) {
        cam_gst_source_fail(&self->gst, "the camera's pipeline cannot be built");
        return FALSE;
    }
    cam_log(CAM_LOG_INFO, "source", "%s: %s %dx%d at %d/%d", self->device, self->gst.info.format,
            mode->width, mode->height, mode->fps_n, mode->fps_d);
    if (gst_element_set_state(self->gst.pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
        cam_gst_source_fail(&self->gst, "the camera does not start");
    return TRUE;
}

/* Opening a device and setting its controls can take its time, or never end; not on the main
 * thread. */
static gpointer run(gpointer data)
{
    CamV4l2Source *self = data;
    CamControls values;
    g_autofree char *reason = NULL;

    self->fd = open(self->device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (self->fd >= 0) {
        if (start(self)) {
            while (take_values(self, TRUE, &values))
                cam_v4l2_controls_apply(self->controls, &values);
        }
        return NULL;
    }
    reason = errno == ENOENT
                 ? g_strdup("the device is absent")
                 : g_strdup_printf("the device cannot be opened: %s", g_strerror(errno));
    cam_gst_source_fail(&self->gst, reason);
    return NULL;
}

static void v4l2_free(CamSource *source)
{
    CamV4l2Source *self = (CamV4l2Source *)source;

    g_mutex_lock(&self->lock);
    self->stopping = TRUE;
    g_cond_signal(&self->wake);
    g_mutex_unlock(&self->lock);
    g_thread_join(self->thread);
    gst_element_set_state(self->gst.pipeline, GST_STATE_NULL);
    gst_object_unref(self->gst.pipeline);
    g_clear_pointer(&self->controls, cam_v4l2_controls_free);
    if (self->fd >= 0)
        close(self->fd);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->wake);
    g_free(self->device);
    g_free(self);
}

static void v4l2_set_controls(CamSource *source, const CamControls *values)
{
    CamV4l2Source *self = (CamV4l2Source *)source;

    g_mutex_lock(&self->lock);
    self->values = *values;
    self->changed = TRUE;
    g_cond_signal(&self->wake);
    g_mutex_unlock(&self->lock);
}

static const CamSourceClass v4l2_class = {.free = v4l2_free, .set_controls = v4l2_set_controls};

CamSource *cam_source_v4l2_new(const CamSourceSetup *setup)
{
    CamV4l2Source *self = g_new0(CamV4l2Source, 1);

    self->gst.base = (CamSource){&v4l2_class, setup->events, setup->owner};
    self->gst.fallback_fps = setup->mode.fps;
    self->gst.pipeline = gst_pipeline_new(NULL);
    self->device = g_strdup(setup->spec->path);
    self->wanted = setup->mode;
    self->values = setup->controls;
    self->fd = -1;
    g_mutex_init(&self->lock);
    g_cond_init(&self->wake);
    self->thread = g_thread_new("v4l2", run, self);
    return &self->gst.base;
}
