/* The newest units of a stream, whole groups, bounded by bytes: what a pre-roll is made of. The
 * memory of the units is shared with whoever else holds them. Not thread-safe. */
#pragma once

#include <gst/gst.h>

typedef struct _CamRing CamRing;

typedef void (*CamRingFunc)(GstBuffer *unit, gpointer user_data);

CamRing *cam_ring_new(gsize max_bytes);
void cam_ring_free(CamRing *ring);
void cam_ring_clear(CamRing *ring);
void cam_ring_set_max(CamRing *ring, gsize max_bytes);

/* Borrows UNIT. A unit with DELTA_UNIT belongs to the group of the one before; one without begins a
 * group. The oldest groups go when there is too much. */
void cam_ring_push(CamRing *ring, GstBuffer *unit);

/* Calls FUNC for all units from the first group that begins at FROM or later; FALSE: there is none.
 */
gboolean cam_ring_replay(CamRing *ring, GstClockTime from, CamRingFunc func, gpointer user_data);

gsize cam_ring_bytes(CamRing *ring);
