/* Tells when a codec that is fed gives nothing: it hangs. Only the time in which it is fed counts;
 * after a pause of the limit's length it begins anew. */
#pragma once

#include "types.h"

typedef struct {
    GstClockTime
        since;        /* the first picture that nothing came of went in; 0: something came of all */
    GstClockTime fed; /* the newest one did */
} CamSilence;

static inline void cam_silence_ended(CamSilence *silence)
{
    silence->since = 0;
}

/* A picture goes in NOW. TRUE: nothing came for LIMIT. */
static inline gboolean cam_silence_fed(CamSilence *silence, GstClockTime limit, GstClockTime now)
{
    if (silence->since == 0 || now > silence->fed + limit)
        silence->since = now;
    silence->fed = now;
    return now > silence->since + limit;
}
