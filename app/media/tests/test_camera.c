/* A camera whose source takes its time: to its first picture, or with every picture. */
#include "camera.h"
#include "source.h"
#include "wait.h"

/* The test picture with one of two faults. Stands here for every source: these functions take the
 * place of those of source.c. */
typedef struct {
    CamSource base;
    CamSourceSetup setup;
    CamSource *pictures; /* NULL: not yet */
    GThread *thread;
    GMutex lock;
    GCond wake;
    gboolean stopping;
} FaultySource;

/* What the sources of this test do. */
static struct {
    gint opened;      /* atomic: how many there were */
    gint64 begin_us;  /* so long after being opened come the first pictures */
    GstClockTime age; /* so old is a picture when it comes */
    gboolean broken;  /* the first one fails at once */
} faults;

static void on_started(gpointer owner, const CamSourceInfo *info)
{
    FaultySource *self = owner;

    self->base.events->started(self->base.owner, info);
}

static void on_raw(gpointer owner, GstBuffer *buffer, GstCaps *caps, GstClockTime pts,
                   guint64 number)
{
    FaultySource *self = owner;

    self->base.events->raw(self->base.owner, buffer, caps, pts - faults.age, number);
}

static const CamSourceEvents faulty_events = {.started = on_started, .raw = on_raw};

static gpointer begin_late(gpointer data)
{
    FaultySource *self = data;
    gint64 when = g_get_monotonic_time() + faults.begin_us;

    g_mutex_lock(&self->lock);
    while (!self->stopping && g_cond_wait_until(&self->wake, &self->lock, when))
        ;
    if (!self->stopping)
        self->pictures = cam_source_test_new(&self->setup);
    g_mutex_unlock(&self->lock);
    return NULL;
}

static void faulty_free(CamSource *source)
{
    FaultySource *self = (FaultySource *)source;

    g_mutex_lock(&self->lock);
    self->stopping = TRUE;
    g_cond_signal(&self->wake);
    g_mutex_unlock(&self->lock);
    if (self->thread)
        g_thread_join(self->thread);
    g_clear_pointer(&self->pictures, cam_source_free);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->wake);
    g_free(self);
}

static const CamSourceClass faulty_class = {.free = faulty_free};

CamSource *cam_source_open(const CamSourceSetup *setup)
{
    FaultySource *self = g_new0(FaultySource, 1);

    self->base = (CamSource){&faulty_class, setup->events, setup->owner};
    self->setup = *setup;
    self->setup.events = &faulty_events;
    self->setup.owner = self;
    g_mutex_init(&self->lock);
    g_cond_init(&self->wake);
    if (g_atomic_int_add(&faults.opened, 1) == 0 && faults.broken)
        self->base.events->failed(self->base.owner, "broken");
    else
        self->thread = g_thread_new("late", begin_late, self);
    return &self->base;
}

void cam_source_free(CamSource *source)
{
    source->klass->free(source);
}

void cam_source_set_controls(CamSource *source, const CamControls *controls)
{
    if (source->klass->set_controls)
        source->klass->set_controls(source, controls);
}

static gboolean is_given_up(gpointer camera)
{
    JsonObject *stats = cam_camera_stats(camera);
    gboolean given_up = g_str_equal(json_object_get_string_member(stats, "state"), "no_signal");

    json_object_unref(stats);
    return given_up;
}

static gboolean is_streaming(gpointer camera)
{
    return cam_camera_is_streaming(camera);
}

static gboolean has_picture(gpointer camera)
{
    CamFrame frame;

    if (cam_camera_take_frame(camera, &frame) != CAM_FRAME_READY)
        return FALSE;
    cam_frame_clear(&frame);
    return TRUE;
}

static gboolean is_closed(gpointer unused)
{
    return !cam_cameras_closing();
}

static CamCamera *camera_new(void)
{
    CamCameraSetup setup = {.spec = {.type = CAM_SOURCE_TEST},
                            .mode = {160, 120, 10},
                            .controls = {.value = {50, 50, 50}}};

    faults.opened = 0;
    return cam_camera_new(&setup);
}

static void end(CamCamera *camera)
{
    cam_camera_close(camera);
    g_assert_true(wait_for(is_closed, NULL));
    cam_camera_unref(camera);
}

/* Given up once, it is waited for longer: else it would be given up for ever. */
static void test_slow(void)
{
    CamCamera *camera;

    faults.begin_us = 6 * G_USEC_PER_SEC;
    faults.age = 0;
    faults.broken = FALSE;
    camera = camera_new();
    g_assert_true(wait_for(is_given_up, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 1);
    g_assert_true(wait_for(is_streaming, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 2);
    end(camera);
}

/* Each picture is older than the "no signal" picture that went out last. */
static void test_behind(void)
{
    CamCamera *camera;

    faults.begin_us = 0;
    faults.age = 500 * GST_MSECOND;
    faults.broken = TRUE;
    camera = camera_new();
    g_assert_true(wait_for(is_given_up, camera));
    g_assert_true(wait_for(is_streaming, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 2);
    g_assert_true(wait_for(has_picture, camera));
    end(camera);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/camera/behind", test_behind);
    g_test_add_func("/camera/slow", test_slow);
    return g_test_run();
}
