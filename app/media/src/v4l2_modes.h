/* What a V4L2 capture device offers. */
#pragma once

#include "mode_choice.h"

/* All modes with a size near WANTED's where the device leaves it open. NULL and *REASON when FD is
 * no capture device. */
GArray *cam_v4l2_modes(int fd, const CamMode *wanted, const char **reason);

/* The name that GStreamer has for a raw FOURCC, NULL when it is none that is used. */
const char *cam_v4l2_raw_format(guint32 fourcc);
