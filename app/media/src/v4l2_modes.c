#include "v4l2_modes.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>

/* A driver that never says "no more" must not keep us for ever. */
#define MAX_INDEX 256

typedef struct {
    int fd;
    enum v4l2_buf_type type;
    const CamMode *wanted;
    GArray *modes;
    CamDeviceMode mode; /* the one that is being completed */
} Listing;

static int retry_ioctl(int fd, unsigned long request, void *argument)
{
    int result;

    do
        result = ioctl(fd, request, argument);
    while (result < 0 && errno == EINTR);
    return result;
}

const char *cam_v4l2_raw_format(guint32 fourcc)
{
    switch (fourcc) {
    case V4L2_PIX_FMT_YUYV:
        return "YUY2";
    case V4L2_PIX_FMT_UYVY:
        return "UYVY";
    case V4L2_PIX_FMT_NV12:
        return "NV12";
    case V4L2_PIX_FMT_YUV420:
        return "I420";
    case V4L2_PIX_FMT_YVU420:
        return "YV12";
    default:
        return NULL;
    }
}

static gboolean kind_of(guint32 fourcc, CamFormatKind *kind)
{
    if (fourcc == V4L2_PIX_FMT_H264)
        *kind = CAM_FORMAT_H264;
    else if (fourcc == V4L2_PIX_FMT_MJPEG || fourcc == V4L2_PIX_FMT_JPEG)
        *kind = CAM_FORMAT_MJPEG;
    else if (cam_v4l2_raw_format(fourcc))
        *kind = CAM_FORMAT_RAW;
    else
        return FALSE;
    return TRUE;
}

static void add(Listing *listing, guint fps_n, guint fps_d)
{
    if (fps_n == 0 || fps_d == 0)
        return;
    listing->mode.fps_n = (int)fps_n;
    listing->mode.fps_d = (int)fps_d;
    g_array_append_val(listing->modes, listing->mode);
}

/* An open range of frame times: the wanted rate where it lies inside, else the nearer end. */
static void add_from_range(Listing *listing, const struct v4l2_frmival_stepwise *range)
{
    double shortest =
        range->min.denominator ? (double)range->min.numerator / range->min.denominator : 0;
    double longest =
        range->max.denominator ? (double)range->max.numerator / range->max.denominator : 0;
    double wanted = 1.0 / listing->wanted->fps;

    if (wanted < shortest)
        add(listing, range->min.denominator, range->min.numerator);
    else if (wanted > longest)
        add(listing, range->max.denominator, range->max.numerator);
    else
        add(listing, (guint)listing->wanted->fps, 1);
}

static void list_rates(Listing *listing)
{
    for (guint32 i = 0; i < MAX_INDEX; i++) {
        struct v4l2_frmivalenum rate = {.index = i,
                                        .pixel_format = listing->mode.fourcc,
                                        .width = (guint32)listing->mode.width,
                                        .height = (guint32)listing->mode.height};

        if (retry_ioctl(listing->fd, VIDIOC_ENUM_FRAMEINTERVALS, &rate) != 0) {
            /* Drivers that do not tell have one rate; which, the pipeline will find out. */
            if (i == 0)
                add(listing, (guint)listing->wanted->fps, 1);
            return;
        }
        if (rate.type != V4L2_FRMIVAL_TYPE_DISCRETE) {
            add_from_range(listing, &rate.stepwise);
            return;
        }
        add(listing, rate.discrete.denominator, rate.discrete.numerator);
    }
}

static int fit(int wanted, guint32 min, guint32 max, guint32 step)
{
    int value = CLAMP(wanted, (int)min, (int)max);

    return step > 1 ? (int)min + (value - (int)min) / (int)step * (int)step : value;
}

static void list_sizes(Listing *listing)
{
    for (guint32 i = 0; i < MAX_INDEX; i++) {
        struct v4l2_frmsizeenum size = {.index = i, .pixel_format = listing->mode.fourcc};

        if (retry_ioctl(listing->fd, VIDIOC_ENUM_FRAMESIZES, &size) != 0)
            return;
        if (size.type == V4L2_FRMSIZE_TYPE_DISCRETE) {
            listing->mode.width = (int)size.discrete.width;
            listing->mode.height = (int)size.discrete.height;
            list_rates(listing);
            continue;
        }
        listing->mode.width = fit(listing->wanted->width, size.stepwise.min_width,
                                  size.stepwise.max_width, size.stepwise.step_width);
        listing->mode.height = fit(listing->wanted->height, size.stepwise.min_height,
                                   size.stepwise.max_height, size.stepwise.step_height);
        list_rates(listing);
        return;
    }
}

static void list_formats(Listing *listing)
{
    for (guint32 i = 0; i < MAX_INDEX; i++) {
        struct v4l2_fmtdesc format = {.index = i, .type = listing->type};

        if (retry_ioctl(listing->fd, VIDIOC_ENUM_FMT, &format) != 0)
            return;
        listing->mode = (CamDeviceMode){.fourcc = format.pixelformat};
        if (kind_of(format.pixelformat, &listing->mode.kind))
            list_sizes(listing);
    }
}

GArray *cam_v4l2_modes(int fd, const CamMode *wanted, const char **reason)
{
    struct v4l2_capability capability = {0};
    Listing listing = {.fd = fd, .wanted = wanted};
    guint32 can;

    if (retry_ioctl(fd, VIDIOC_QUERYCAP, &capability) != 0) {
        *reason = "not a V4L2 device";
        return NULL;
    }
    can = capability.capabilities & V4L2_CAP_DEVICE_CAPS ? capability.device_caps
                                                         : capability.capabilities;
    if (can & V4L2_CAP_VIDEO_CAPTURE)
        listing.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    else if (can & V4L2_CAP_VIDEO_CAPTURE_MPLANE)
        listing.type = V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE;
    if (!listing.type || !(can & V4L2_CAP_STREAMING)) {
        *reason = "the device does not capture video";
        return NULL;
    }
    listing.modes = g_array_new(FALSE, FALSE, sizeof(CamDeviceMode));
    list_formats(&listing);
    return listing.modes;
}
