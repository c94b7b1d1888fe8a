#include "synced_file.h"
#include "wait.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int syncs;        /* atomic */
static int synced_bytes; /* atomic: the size of the file at the last one's beginning */
static int broken;       /* atomic: the disk takes nothing more */

/* Stands before libc's for all that is linked in here. */
int fdatasync(int fd)
{
    struct stat info;
    int result;

    g_atomic_int_inc(&syncs);
    if (g_atomic_int_get(&broken)) {
        errno = EIO;
        return -1;
    }
    g_assert_no_errno(fstat(fd, &info));
    result = (int)syscall(SYS_fdatasync, fd);
    g_atomic_int_set(&synced_bytes, (int)info.st_size);
    return result;
}

typedef struct {
    char *folder;
    char *path;
    CamSyncedFile *file;
    gint64 began;
    int written;
    int failures, error_number; /* atomic */
} Fixture;

static void on_failed(int error_number, gpointer user_data)
{
    Fixture *self = user_data;

    g_atomic_int_set(&self->error_number, error_number);
    g_atomic_int_inc(&self->failures);
}

static void set_up(Fixture *self, gconstpointer data)
{
    int error_number = 0;

    (void)data;
    self->folder = g_dir_make_tmp("synced-XXXXXX", NULL);
    self->path = g_build_filename(self->folder, "file", NULL);
    g_atomic_int_set(&syncs, 0);
    g_atomic_int_set(&synced_bytes, 0);
    g_atomic_int_set(&broken, 0);
    self->began = g_get_monotonic_time();
    self->file = cam_synced_file_new(self->path, on_failed, self, &error_number);
    g_assert_nonnull(self->file);
}

static void tear_down(Fixture *self, gconstpointer data)
{
    (void)data;
    g_unlink(self->path);
    g_rmdir(self->folder);
    g_free(self->path);
    g_free(self->folder);
}

static void grow(Fixture *self)
{
    static const char bytes[1000];

    g_assert_cmpint(write(cam_synced_file_fd(self->file), bytes, sizeof bytes), ==, sizeof bytes);
    self->written += (int)sizeof bytes;
}

static gboolean all_synced(gpointer data)
{
    Fixture *self = data;

    return g_atomic_int_get(&synced_bytes) == self->written;
}

/* Each time that it has grown, without anybody asking. */
static void test_grows(Fixture *self, gconstpointer data)
{
    (void)data;
    for (int i = 0; i < 3; i++) {
        grow(self);
        g_assert_true(wait_for(all_synced, self));
    }
    g_assert_cmpint(cam_synced_file_close(self->file), ==, self->written);
}

/* A file that grows all the time is not synced all the time, and one that does not grow never. */
static void test_bounded(Fixture *self, gconstpointer data)
{
    gint64 last = self->began + G_USEC_PER_SEC;
    gint64 most;
    int after;

    (void)data;
    while (g_get_monotonic_time() < last) {
        grow(self);
        g_usleep(2000);
    }
    g_assert_true(wait_for(all_synced, self));
    /* One more may follow: what the last one took was newer than what it was begun for. */
    g_usleep(500 * 1000);
    after = g_atomic_int_get(&syncs);
    most = (g_get_monotonic_time() - self->began) / (200 * 1000) + 1;
    g_assert_cmpint(after, <=, most);
    g_usleep(600 * 1000);
    g_assert_cmpint(g_atomic_int_get(&syncs), ==, after);
    g_assert_cmpint(cam_synced_file_close(self->file), ==, self->written);
}

static gboolean told(gpointer data)
{
    return g_atomic_int_get(&((Fixture *)data)->failures) > 0;
}

/* The kernel tells a failed write once: it is passed on, once, and nothing is tried again. */
static void test_fails(Fixture *self, gconstpointer data)
{
    int after;

    (void)data;
    g_atomic_int_set(&broken, 1);
    grow(self);
    g_assert_true(wait_for(told, self));
    after = g_atomic_int_get(&syncs);
    grow(self);
    g_usleep(500 * 1000);
    g_assert_cmpint(g_atomic_int_get(&syncs), ==, after);
    g_assert_cmpint(cam_synced_file_close(self->file), ==, self->written);
    g_assert_cmpint(g_atomic_int_get(&self->failures), ==, 1);
    g_assert_cmpint(g_atomic_int_get(&self->error_number), ==, EIO);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/synced_file/grows", Fixture, NULL, set_up, test_grows, tear_down);
    g_test_add("/synced_file/bounded", Fixture, NULL, set_up, test_bounded, tear_down);
    g_test_add("/synced_file/fails", Fixture, NULL, set_up, test_fails, tear_down);
    return g_test_run();
}
