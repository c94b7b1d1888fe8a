#include "source.h"

CamSource *cam_source_open(const CamSourceSetup *setup)
{
    switch (setup->spec->type) {
    default:
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
