#include "source.h"

CamSource *cam_source_open(const CamSourceSetup *setup)
{
    switch (setup->spec->type) {
    case CAM_SOURCE_V4L2:
        return cam_source_v4l2_new(setup);
    case CAM_SOURCE_FILE:
        return cam_source_file_new(setup);
    case CAM_SOURCE_TEST:
        break;
    }
    return cam_source_test_new(setup);
}

void cam_source_free(CamSource *source)
{
    source->klass->free(source);
}

void cam_source_set_controls(CamSource *source, const CamControls *controls)
{
    if (source->klass->set_controls)
        source->klass->set_controls(source, controls);
}
