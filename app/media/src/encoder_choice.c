#include "encoder_choice.h"
#include "log.h"

#include <gst/gst.h>

#define MAX_CANDIDATES 4

/* Best first: hardware, then the better software encoder. */
static const char *const candidates[CAM_N_VIDEO_CODECS][MAX_CANDIDATES] = {
    [CAM_VIDEO_H264] = {"v4l2h264enc", "x264enc", "openh264enc"},
    [CAM_VIDEO_H265] = {"v4l2h265enc", "x265enc"},
    [CAM_VIDEO_MJPEG] = {"jpegenc"},
};
static const char *working[CAM_N_VIDEO_CODECS][MAX_CANDIDATES + 1];

/* Being registered is not enough: opening the device or the library happens on the way to READY. */
static gboolean works(const char *name)
{
    GstElement *element = gst_element_factory_make(name, NULL);
    gboolean ok;

    if (!element)
        return FALSE;
    gst_object_ref_sink(element);
    ok = gst_element_set_state(element, GST_STATE_READY) == GST_STATE_CHANGE_SUCCESS;
    gst_element_set_state(element, GST_STATE_NULL);
    gst_object_unref(element);
    return ok;
}

static void probe(CamVideoCodec codec)
{
    guint n = 0;

    for (guint i = 0; i < MAX_CANDIDATES && candidates[codec][i]; i++) {
        if (works(candidates[codec][i]))
            working[codec][n++] = candidates[codec][i];
    }
    working[codec][n] = NULL;
}

void cam_encoder_choice_probe(void)
{
    for (int codec = 0; codec < CAM_N_VIDEO_CODECS; codec++)
        probe((CamVideoCodec)codec);
    if (cam_encoder_choice())
        cam_log(CAM_LOG_INFO, "encoder", "using %s", cam_encoder_choice());
    else
        cam_log(CAM_LOG_ERROR, "encoder", "no H.264 encoder works on this machine");
}

const char *const *cam_encoder_choice_all(CamVideoCodec codec)
{
    return working[codec];
}

const char *cam_encoder_choice(void)
{
    return working[CAM_VIDEO_H264][0];
}
