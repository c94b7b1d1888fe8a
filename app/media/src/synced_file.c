#include "synced_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What has been written is seen within LOOK_US and synced at once: a fragment of an MP4 must not
 * wait for the time of a sync as well. But syncs begin SYNC_INTERVAL_US apart at least, for the
 * card's sake; a card that takes longer than that for one is kept busy, or it would lose more. */
#define LOOK_US (50 * 1000)
#define SYNC_INTERVAL_US (200 * 1000)

struct _CamSyncedFile {
    char *path;
    int fd;
    CamSyncFailed failed;
    gpointer user_data;
    gboolean lost; /* the sync thread's, and close()'s once that has ended */
    GThread *thread;
    GMutex lock;
    GCond changed;
    gboolean stop;
};

static int sync_directory(const char *path)
{
    g_autofree char *directory = g_path_get_dirname(path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;

    if (fd < 0)
        return -1;
    result = fsync(fd);
    if (result != 0 && errno == EINVAL) /* a file system that has no such thing */
        result = 0;
    close(fd);
    return result;
}

/* RESULT: what the call returned that errno is of. */
static void check(CamSyncedFile *self, int result)
{
    if (result == 0 || self->lost)
        return;
    self->lost = TRUE;
    self->failed(errno, self->user_data);
}

static gpointer sync_loop(gpointer data)
{
    CamSyncedFile *self = data;
    gint64 synced_size = 0;
    gint64 not_before = 0;

    /* The file's name first: without it a power cut takes all that is synced here. */
    check(self, sync_directory(self->path));
    g_mutex_lock(&self->lock);
    while (!self->stop && !self->lost) {
        gint64 now = g_get_monotonic_time();
        gint64 size = cam_synced_file_size(self);

        if (size == synced_size || now < not_before) {
            g_cond_wait_until(&self->changed, &self->lock, now + LOOK_US);
            continue;
        }
        g_mutex_unlock(&self->lock);
        check(self, fdatasync(self->fd));
        g_mutex_lock(&self->lock);
        synced_size = size;
        not_before = now + SYNC_INTERVAL_US;
    }
    g_mutex_unlock(&self->lock);
    return NULL;
}

CamSyncedFile *cam_synced_file_new(const char *path, CamSyncFailed failed, gpointer user_data,
                                   int *error_number)
{
    CamSyncedFile *self;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);

    if (fd < 0) {
        *error_number = errno;
        return NULL;
    }
    self = g_new0(CamSyncedFile, 1);
    self->path = g_strdup(path);
    self->fd = fd;
    self->failed = failed;
    self->user_data = user_data;
    g_mutex_init(&self->lock);
    g_cond_init(&self->changed);
    self->thread = g_thread_new("file-sync", sync_loop, self);
    return self;
}

int cam_synced_file_fd(CamSyncedFile *self)
{
    return self->fd;
}

gint64 cam_synced_file_size(CamSyncedFile *self)
{
    struct stat info;

    return fstat(self->fd, &info) == 0 ? info.st_size : 0;
}

gint64 cam_synced_file_close(CamSyncedFile *self)
{
    gint64 size;

    g_mutex_lock(&self->lock);
    self->stop = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    g_thread_join(self->thread);
    check(self, fsync(self->fd));
    check(self, sync_directory(self->path));
    size = cam_synced_file_size(self);
    close(self->fd);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->changed);
    g_free(self->path);
    g_free(self);
    return size;
}
