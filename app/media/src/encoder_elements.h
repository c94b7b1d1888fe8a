/* What differs from encoder to encoder. */
#pragma once

#include "types.h"

void cam_encoder_element_configure(GstElement *element, const char *factory,
                                   const CamStreamConfig *config);

/* What its output is narrowed to. */
GstCaps *cam_encoder_element_caps(const char *factory, CamVideoCodec codec);

/* The parser behind it, NULL for a codec that needs none. */
const char *cam_encoder_element_parser(CamVideoCodec codec);

/* The quality that brings JPEGs of config's size near its bitrate, after one of QUALITY took BYTES.
 */
int cam_jpeg_quality_next(const CamStreamConfig *config, int quality, gsize bytes);
