/* The codecs of sound that this machine has. */
#pragma once

#include "types.h"

/* Finds out which encoders work and what they produce; at the start, once. */
void cam_audio_codecs_probe(void);

/* aac, opus, pcmu, mp3, pcm */
const char *cam_audio_codec_name(CamAudioCodec codec);
/* Any of the names; FALSE: none. */
gboolean cam_audio_codec_of(const char *name, CamAudioCodec *codec);

/* The element that encodes and its input; NULL where there is none, or none is needed (PCM). */
GstElement *cam_audio_codec_element(CamAudioCodec codec);
GstCaps *cam_audio_codec_input(CamAudioCodec codec);

/* References; NULL where there is no encoder. */
GstCaps *cam_audio_codec_caps(CamAudioCodec codec);
GstBuffer *cam_audio_codec_silence(CamAudioCodec codec);

/* Length of a whole unit, and how much later than its input the encoder's sound is in its output
 * (and decoded from it). */
GstClockTime cam_audio_codec_unit(CamAudioCodec codec);
GstClockTime cam_audio_codec_delay(CamAudioCodec codec);
