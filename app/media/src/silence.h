/* Tells when a codec that is fed gives nothing: it hangs. Only the time in which it is fed counts;
 * after a pause of the limit's length it begins anew. One that is fed seldom is given more time,
 * for many give a picture only when some more are in. */
#pragma once

#include "types.h"

/* So many pictures may be in without anything coming out. */
#define CAM_SILENCE_PICTURES 10

typedef struct {
    /* The first picture that nothing came of went in; 0: something came of all. */
    GstClockTime since;
    GstClockTime fed; /* the newest one did */
    guint pictures;   /* since then */
} CamSilence;

static inline void cam_silence_ended(CamSilence *silence)
{
    silence->since = 0;
}

/* A picture goes in NOW. TRUE: nothing came for LIMIT. */
static inline gboolean cam_silence_fed(CamSilence *silence, GstClockTime limit, GstClockTime now)
{
    if (silence->since == 0 || now > silence->fed + limit) {
        silence->since = now;
        silence->pictures = 0;
    }
    silence->fed = now;
    return ++silence->pictures > CAM_SILENCE_PICTURES && now > silence->since + limit;
}
