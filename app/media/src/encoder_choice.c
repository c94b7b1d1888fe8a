#include "encoder_choice.h"
#include "log.h"

#include <gst/gst.h>

/* Best first: hardware, then the better software encoder. */
static const char *const candidates[] = {"v4l2h264enc", "x264enc", "openh264enc"};
static const char *working[G_N_ELEMENTS(candidates) + 1];

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

void cam_encoder_choice_probe(void)
{
    guint n = 0;

    for (guint i = 0; i < G_N_ELEMENTS(candidates); i++) {
        if (works(candidates[i]))
            working[n++] = candidates[i];
    }
    working[n] = NULL;
    if (n)
        cam_log(CAM_LOG_INFO, "encoder", "using %s", working[0]);
    else
        cam_log(CAM_LOG_ERROR, "encoder", "no H.264 encoder works on this machine");
}

const char *const *cam_encoder_choice_all(void)
{
    return working;
}

const char *cam_encoder_choice(void)
{
    return working[0];
}
