/* A device that hangs while its controls are set. */
#include "source.h"
#include "v4l2_controls.h"
#include "v4l2_modes.h"
#include "wait.h"

#include <glib/gstdio.h>
#include <unistd.h>

/* The device: a file that has one mode and all controls. These functions take the place of those of
 * v4l2_modes.c and v4l2_controls.c. */
static struct {
    GMutex lock;
    GCond wake;
    gboolean hangs;
    guint begun, done; /* settings */
    int brightness;
} device;

GArray *cam_v4l2_modes(int fd, const CamMode *wanted, const char **reason)
{
    GArray *modes = g_array_new(FALSE, TRUE, sizeof(CamDeviceMode));
    CamDeviceMode mode = {.kind = CAM_FORMAT_MJPEG,
                          .width = wanted->width,
                          .height = wanted->height,
                          .fps_n = wanted->fps,
                          .fps_d = 1};

    return g_array_append_val(modes, mode);
}

const char *cam_v4l2_raw_format(guint32 fourcc)
{
    return NULL;
}

CamV4l2Controls *cam_v4l2_controls_new(int fd)
{
    return (CamV4l2Controls *)g_new0(char, 1);
}

void cam_v4l2_controls_free(CamV4l2Controls *controls)
{
    g_free(controls);
}

gboolean cam_v4l2_controls_has(CamV4l2Controls *controls, CamControl control)
{
    return TRUE;
}

void cam_v4l2_controls_apply(CamV4l2Controls *controls, const CamControls *values)
{
    g_mutex_lock(&device.lock);
    device.begun++;
    while (device.hangs)
        g_cond_wait(&device.wake, &device.lock);
    device.brightness = values->value[CAM_BRIGHTNESS];
    device.done++;
    g_mutex_unlock(&device.lock);
}

int cam_v4l2_control_scale(int value, int minimum, int maximum, int step, int fallback)
{
    return value;
}

static void set_hanging(gboolean hangs)
{
    g_mutex_lock(&device.lock);
    device.hangs = hangs;
    g_cond_broadcast(&device.wake);
    g_mutex_unlock(&device.lock);
}

static gboolean has_begun(gpointer n)
{
    gboolean begun;

    g_mutex_lock(&device.lock);
    begun = device.begun == GPOINTER_TO_UINT(n);
    g_mutex_unlock(&device.lock);
    return begun;
}

static gboolean has_done(gpointer n)
{
    gboolean done;

    g_mutex_lock(&device.lock);
    done = device.done == GPOINTER_TO_UINT(n);
    g_mutex_unlock(&device.lock);
    return done;
}

static void on_failed(gpointer owner, const char *reason)
{
}

static const CamSourceEvents events = {.failed = on_failed};

typedef struct {
    CamSource *source;
    int from, to;
    gint set; /* atomic */
} Setting;

static gpointer set(gpointer data)
{
    Setting *setting = data;

    for (int brightness = setting->from; brightness <= setting->to; brightness++)
        cam_source_set_controls(setting->source, &(CamControls){{brightness, 50, 50}});
    g_atomic_int_set(&setting->set, TRUE);
    return NULL;
}

static gboolean is_set(gpointer data)
{
    return g_atomic_int_get(&((Setting *)data)->set);
}

/* Sets each brightness in turn, and is not kept waiting. */
static void set_in_time(CamSource *source, int from, int to)
{
    Setting setting = {source, from, to, FALSE};
    GThread *thread = g_thread_new("set", set, &setting);

    g_assert_true(wait_for(is_set, &setting));
    g_thread_join(thread);
}

/* Nobody waits for it, and in the end it has the newest values. */
static void test_hanging(void)
{
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("camera-XXXXXX", &path, NULL);
    CamSourceSpec spec = {.type = CAM_SOURCE_V4L2, .path = path};
    CamSource *source = cam_source_open(&(CamSourceSetup){
        .spec = &spec, .mode = {160, 120, 10}, .controls = {{50, 50, 50}}, .events = &events});

    g_assert_true(wait_for(has_done, GUINT_TO_POINTER(1)));
    set_hanging(TRUE);
    set_in_time(source, 55, 55);
    g_assert_true(wait_for(has_begun, GUINT_TO_POINTER(2)));
    set_in_time(source, 60, 90);
    set_hanging(FALSE);
    g_assert_true(wait_for(has_done, GUINT_TO_POINTER(3)));
    g_assert_cmpint(device.brightness, ==, 90);
    cam_source_free(source);
    close(file);
    g_unlink(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/v4l2/hanging-controls", test_hanging);
    return g_test_run();
}
