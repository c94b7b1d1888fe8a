#include "v4l2_controls.h"
#include "log.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <math.h>
#include <sys/ioctl.h>

typedef struct {
    gboolean present;
    int minimum, maximum, step, fallback;
} Range;

struct _CamV4l2Controls {
    int fd;
    Range range[CAM_N_CONTROLS];
};

static const guint32 control_ids[CAM_N_CONTROLS] = {V4L2_CID_BRIGHTNESS, V4L2_CID_CONTRAST,
                                                    V4L2_CID_SATURATION};

static Range query(int fd, guint32 id)
{
    struct v4l2_queryctrl answer = {.id = id};

    if (ioctl(fd, VIDIOC_QUERYCTRL, &answer) != 0 || answer.type != V4L2_CTRL_TYPE_INTEGER ||
        answer.flags & (V4L2_CTRL_FLAG_DISABLED | V4L2_CTRL_FLAG_READ_ONLY) ||
        answer.maximum <= answer.minimum)
        return (Range){0};
    return (Range){TRUE, answer.minimum, answer.maximum, MAX(1, answer.step), answer.default_value};
}

CamV4l2Controls *cam_v4l2_controls_new(int fd)
{
    CamV4l2Controls *controls = g_new0(CamV4l2Controls, 1);

    controls->fd = fd;
    for (int i = 0; i < CAM_N_CONTROLS; i++)
        controls->range[i] = query(fd, control_ids[i]);
    return controls;
}

void cam_v4l2_controls_free(CamV4l2Controls *controls)
{
    g_free(controls);
}

gboolean cam_v4l2_controls_has(CamV4l2Controls *controls, CamControl control)
{
    return controls->range[control].present;
}

int cam_v4l2_control_scale(int value, int minimum, int maximum, int step, int fallback)
{
    double half = CAM_CONTROL_NEUTRAL;
    double scaled = value <= CAM_CONTROL_NEUTRAL
                        ? minimum + (fallback - (double)minimum) * value / half
                        : fallback + ((double)maximum - fallback) * (value - half) / half;
    double steps = round((scaled - minimum) / step);

    if (value == CAM_CONTROL_NEUTRAL)
        return fallback;
    return (int)MIN(minimum + steps * step, maximum);
}

void cam_v4l2_controls_apply(CamV4l2Controls *controls, const CamControls *values)
{
    for (int i = 0; i < CAM_N_CONTROLS; i++) {
        const Range *range = &controls->range[i];
        struct v4l2_control control = {.id = control_ids[i]};

        if (!range->present)
            continue;
        control.value = cam_v4l2_control_scale(values->value[i], range->minimum, range->maximum,
                                               range->step, range->fallback);
        if (ioctl(controls->fd, VIDIOC_S_CTRL, &control) != 0)
            cam_log(CAM_LOG_WARN, "source", "%s cannot be set: %s", cam_control_name(i),
                    g_strerror(errno));
    }
}
