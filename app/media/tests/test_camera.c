/* A camera whose source takes its time: to its first picture, or with every picture. */
#include "camera_wait.h"
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
    gboolean native;  /* they encode themselves, with one key frame at the beginning */
    GMutex hanging;   /* who holds it keeps them from ending */
} faults;

static void on_started(gpointer owner, const CamSourceInfo *info)
{
    FaultySource *self = owner;
    CamSourceInfo told = *info;

    if (faults.native)
        g_strlcpy(told.format, "H264", sizeof(told.format));
    self->base.events->started(self->base.owner, &told);
}

static void on_raw(gpointer owner, GstBuffer *buffer, GstCaps *caps, GstClockTime pts,
                   guint64 number)
{
    FaultySource *self = owner;

    if (!faults.native) {
        self->base.events->raw(self->base.owner, buffer, caps, pts - faults.age, number);
        return;
    }
    gst_buffer_unref(buffer);
    self->base.events->encoded(self->base.owner, gst_buffer_new_allocate(NULL, 100, NULL),
                               pts - faults.age, number == self->setup.first_number);
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

    g_mutex_lock(&faults.hanging);
    g_mutex_unlock(&faults.hanging);
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

static CamCamera *camera_new(void)
{
    CamCameraSetup setup = {.spec = {.type = CAM_SOURCE_TEST},
                            .mode = {160, 120, 10},
                            .controls = {.value = {50, 50, 50}},
                            .streams = {{.name = "stream1",
                                         .codec = CAM_VIDEO_H264,
                                         .width = 160,
                                         .height = 120,
                                         .fps = 10,
                                         .gop = 10}},
                            .n_streams = 1};

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
    faults.native = FALSE;
    camera = camera_new();
    g_assert_true(wait_for(is_given_up, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 1);
    g_assert_true(wait_for(is_streaming, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 2);
    end(camera);
}

static gint64 stat_of(CamCamera *camera, const char *name)
{
    JsonObject *stats = cam_camera_stats(camera);
    gint64 value = json_object_get_int_member(stats, name);

    json_object_unref(stats);
    return value;
}

/* A camera without signal that comes back with pictures of an AGE. */
static CamCamera *camera_behind(GstClockTime age, gboolean native)
{
    CamCamera *camera;

    faults.begin_us = 0;
    faults.age = age;
    faults.broken = TRUE;
    faults.native = native;
    camera = camera_new();
    g_assert_true(wait_for(is_given_up, camera));
    return camera;
}

/* Each picture is older than the "no signal" picture that went out last: all are used. */
static void test_behind(void)
{
    CamCamera *camera = camera_behind(3 * GST_SECOND, FALSE);

    g_assert_true(wait_for(is_streaming, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 2);
    g_assert_true(wait_for(has_picture, camera));
    g_assert_cmpint(stat_of(camera, "frames_dropped"), ==, 0);
    end(camera);
}

/* The device's last user hangs in it: it is tried without waiting for that. */
static void test_hanging(void)
{
    CamCamera *camera;

    g_mutex_lock(&faults.hanging);
    camera = camera_behind(0, FALSE);
    g_assert_true(wait_for(is_streaming, camera));
    g_assert_cmpint(g_atomic_int_get(&faults.opened), ==, 2);
    g_assert_true(cam_endings_pending());
    g_mutex_unlock(&faults.hanging);
    end(camera);
}

static gboolean opened_more(gpointer before)
{
    return g_atomic_int_get(&faults.opened) > GPOINTER_TO_INT(before);
}

/* All its users hang: that is told, until one of them comes back. */
static void test_all_hang(void)
{
    CamCamera *camera;

    g_mutex_lock(&faults.hanging);
    camera = camera_behind(0, FALSE);
    for (int users = 1; users <= 3; users++) {
        g_assert_true(wait_for(opened_more, GINT_TO_POINTER(users)));
        cam_camera_restart(camera);
    }
    g_assert_true(is_given_up(camera));
    g_mutex_unlock(&faults.hanging);
    g_assert_true(wait_for(is_streaming, camera));
    end(camera);
}

typedef struct {
    GMutex lock;
    guint units;
    GstClockTime last;
} Viewer;

static gboolean deliver(GstBuffer *au, gpointer user_data)
{
    Viewer *viewer = user_data;

    g_mutex_lock(&viewer->lock);
    g_assert_cmpuint(GST_BUFFER_PTS(au), >, viewer->last);
    viewer->last = GST_BUFFER_PTS(au);
    viewer->units++;
    g_mutex_unlock(&viewer->lock);
    gst_buffer_unref(au);
    return TRUE;
}

static gboolean sees(gpointer user_data)
{
    Viewer *viewer = user_data;
    gboolean enough;

    g_mutex_lock(&viewer->lock);
    enough = viewer->units >= 5;
    g_mutex_unlock(&viewer->lock);
    return enough;
}

/* The one key frame is among the pictures that are too old. */
static void test_native_behind(void)
{
    CamCamera *camera = camera_behind(3 * GST_SECOND, TRUE);
    CamHub *hub = cam_camera_hub(camera, "stream1");
    Viewer viewer = {.units = 0};
    guint id;

    g_mutex_init(&viewer.lock);
    id = cam_hub_attach(hub, &(CamHubConsumer){.deliver = deliver, .user_data = &viewer});
    g_assert_true(wait_for(sees, &viewer));
    cam_hub_detach(hub, id);
    cam_hub_unref(hub);
    end(camera);
    g_mutex_clear(&viewer.lock);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gst_init(NULL, NULL);
    g_test_add_func("/camera/behind", test_behind);
    g_test_add_func("/camera/hanging", test_hanging);
    g_test_add_func("/camera/all-hang", test_all_hang);
    g_test_add_func("/camera/native-behind", test_native_behind);
    g_test_add_func("/camera/slow", test_slow);
    return g_test_run();
}
