#include "synced_file.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYNC_INTERVAL_US (400 * 1000)

struct _CamSyncedFile {
    char *path;
    int fd;
    GThread *thread;
    GMutex lock;
    GCond changed;
    gboolean stop;
};

static void sync_directory(const char *path)
{
    g_autofree char *directory = g_path_get_dirname(path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static gpointer sync_loop(gpointer data)
{
    CamSyncedFile *self = data;

    /* The file's name first: without it a power cut takes all that is synced here. */
    sync_directory(self->path);
    g_mutex_lock(&self->lock);
    while (!self->stop) {
        gint64 deadline = g_get_monotonic_time() + SYNC_INTERVAL_US;

        while (!self->stop && g_cond_wait_until(&self->changed, &self->lock, deadline))
            continue;
        g_mutex_unlock(&self->lock);
        fdatasync(self->fd);
        g_mutex_lock(&self->lock);
    }
    g_mutex_unlock(&self->lock);
    return NULL;
}

CamSyncedFile *cam_synced_file_new(const char *path, int *error_number)
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
    if (fsync(self->fd) != 0)
        cam_log(CAM_LOG_ERROR, "recorder", "fsync: %s", g_strerror(errno));
    size = cam_synced_file_size(self);
    close(self->fd);
    sync_directory(self->path);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->changed);
    g_free(self->path);
    g_free(self);
    return size;
}
