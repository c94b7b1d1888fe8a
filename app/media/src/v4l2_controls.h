/* Brightness, contrast and saturation in the camera itself. */
#pragma once

#include "types.h"

typedef struct _CamV4l2Controls CamV4l2Controls;

/* Asks the device behind FD, which is borrowed, what it can adjust. */
CamV4l2Controls *cam_v4l2_controls_new(int fd);
void cam_v4l2_controls_free(CamV4l2Controls *controls);

gboolean cam_v4l2_controls_has(CamV4l2Controls *controls, CamControl control);
/* Sets all that the device has. */
void cam_v4l2_controls_apply(CamV4l2Controls *controls, const CamControls *values);

/* 0 … 100 to a device's range: 50 is its default, linear to the ends on either side, on its steps.
 */
int cam_v4l2_control_scale(int value, int minimum, int maximum, int step, int fallback);
