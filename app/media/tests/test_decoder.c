/* A camera with an encoder of its own whose decoder breaks. */
#include "camera_wait.h"
#include "fake_codec.h"
#include "key_frame.h"
#include "source.h"
#include "wait.h"

#define INTERVAL_US 100000

/* Stands here for every source: one key frame, again and again. */
typedef struct {
    CamSource base;
    GThread *thread;
    gint stopping; /* atomic */
} KeySource;

static GstBuffer *key_frame;

static gpointer run(gpointer data)
{
    KeySource *self = data;
    CamSourceInfo info = {.format = "H264", .width = KEY_WIDTH, .height = KEY_HEIGHT, .fps = 10};

    self->base.events->started(self->base.owner, &info);
    while (!g_atomic_int_get(&self->stopping)) {
        self->base.events->encoded(self->base.owner, gst_buffer_copy(key_frame), cam_now(), TRUE);
        g_usleep(INTERVAL_US);
    }
    return NULL;
}

static void key_free(CamSource *source)
{
    KeySource *self = (KeySource *)source;

    g_atomic_int_set(&self->stopping, TRUE);
    g_thread_join(self->thread);
    g_free(self);
}

static const CamSourceClass key_class = {.free = key_free};

CamSource *cam_source_open(const CamSourceSetup *setup)
{
    KeySource *self = g_new0(KeySource, 1);

    self->base = (CamSource){&key_class, setup->events, setup->owner};
    self->thread = g_thread_new("key", run, self);
    return &self->base;
}

void cam_source_free(CamSource *source)
{
    source->klass->free(source);
}

void cam_source_set_controls(CamSource *source, const CamControls *controls)
{
}

static GstBuffer *decode(GstBuffer *buffer)
{
    GstBuffer *picture = gst_buffer_new_allocate(NULL, KEY_WIDTH * KEY_HEIGHT * 3 / 2, NULL);

    GST_BUFFER_PTS(picture) = GST_BUFFER_PTS(buffer);
    return picture;
}

static FakeFault first_fault;

static FakeFault fault_of(gint number)
{
    return number == 1 ? first_fault : FAKE_WORKS;
}

/* The first decoder has a FAULT: another takes its place, and the main loop goes on. */
static void test_replaced(gconstpointer fault)
{
    CamCameraSetup setup = {.spec = {.type = CAM_SOURCE_TEST},
                            .mode = {KEY_WIDTH, KEY_HEIGHT, 10},
                            .controls = {.value = {50, 50, 50}}};
    CamCamera *camera;

    first_fault = (FakeFault)GPOINTER_TO_INT(fault);
    fake_codec.made = 0;
    g_mutex_lock(&fake_codec.hanging);
    camera = cam_camera_new(&setup);
    g_assert_true(wait_for(is_streaming, camera));
    g_assert_true(wait_long(has_picture, camera));
    g_assert_cmpint(g_atomic_int_get(&fake_codec.made), ==, 2);
    g_assert_cmpint(cam_endings_pending(), ==, first_fault == FAKE_HANGS);
    g_mutex_unlock(&fake_codec.hanging);
    cam_camera_close(camera);
    g_assert_true(wait_for(is_closed, NULL));
    cam_camera_unref(camera);
}

int main(int argc, char **argv)
{
    int result;

    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    key_frame = key_frame_new();
    fake_codec.fault = fault_of;
    fake_codec.give = decode;
    fake_codec.caps = "video/x-raw,format=I420,width=160,height=120,framerate=10/1";
    fake_codec_register("avdec_h264");
    g_test_add_data_func("/decoder/fails", GINT_TO_POINTER(FAKE_FAILS), test_replaced);
    g_test_add_data_func("/decoder/hangs", GINT_TO_POINTER(FAKE_HANGS), test_replaced);
    g_test_add_data_func("/decoder/silent", GINT_TO_POINTER(FAKE_SILENT), test_replaced);
    result = g_test_run();
    gst_buffer_unref(key_frame);
    return result;
}
