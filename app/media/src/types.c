#include "types.h"

#include <string.h>

const char *cam_control_name(CamControl control)
{
    static const char *const names[] = {"brightness", "contrast", "saturation"};

    return names[control];
}

int cam_stream_config_shown_fps(const CamStreamConfig *config)
{
    return config->shown_fps ? config->shown_fps : config->fps;
}

gboolean cam_stream_config_same_encoding(const CamStreamConfig *a, const CamStreamConfig *b)
{
    return a->codec == b->codec && a->width == b->width && a->height == b->height &&
           a->fps == b->fps && a->bitrate_kbps == b->bitrate_kbps && a->gop == b->gop &&
           a->shown_fps == b->shown_fps;
}

CamSourceSpec cam_source_spec_copy(const CamSourceSpec *spec)
{
    return (CamSourceSpec){.type = spec->type, .path = g_strdup(spec->path)};
}

void cam_source_spec_clear(CamSourceSpec *spec)
{
    g_clear_pointer(&spec->path, g_free);
}

CamAudioSpec cam_audio_spec_copy(const CamAudioSpec *spec)
{
    return (CamAudioSpec){.type = spec->type, .device = g_strdup(spec->device)};
}

void cam_audio_spec_clear(CamAudioSpec *spec)
{
    g_clear_pointer(&spec->device, g_free);
}

GstClockTime cam_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return GST_TIMESPEC_TO_TIME(now);
}

gint64 cam_wall_us(GstClockTime pts)
{
    gint64 age_us = ((gint64)cam_now() - (gint64)pts) / 1000;

    return g_get_real_time() - age_us;
}

gint64 cam_wall_ms(GstClockTime pts)
{
    return cam_wall_us(pts) / 1000;
}

void cam_pipeline_use_timeline(GstElement *pipeline)
{
    GstClock *clock = gst_system_clock_obtain();

    gst_pipeline_use_clock(GST_PIPELINE(pipeline), clock);
    gst_object_unref(clock);
    gst_element_set_base_time(pipeline, 0);
    gst_element_set_start_time(pipeline, GST_CLOCK_TIME_NONE);
}

void cam_json_set_string(JsonObject *object, const char *name, const char *value)
{
    if (value)
        json_object_set_string_member(object, name, value);
    else
        json_object_set_null_member(object, name);
}

void cam_json_set_int_or_null(JsonObject *object, const char *name, gboolean known, gint64 value)
{
    if (known)
        json_object_set_int_member(object, name, value);
    else
        json_object_set_null_member(object, name);
}
