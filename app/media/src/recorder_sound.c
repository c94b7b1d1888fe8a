/* The sound of a recording. Its units are put one after the other without a gap, because AVI has no
 * times and players differ in what they make of gaps: where sound is missing there is silence,
 * where there is too much of it units are left out, so that it never is off by more than a unit. */
#include "recorder_private.h"

/* Sound comes later than its pictures, but not by more than this. */
#define PATIENCE (500 * GST_MSECOND)
/* Units that wait for their pictures. */
#define MAX_WAITING 256

static GstClockTime unit_time(CamRecorder *self)
{
    return GST_BUFFER_DURATION(self->silence);
}

static void append(CamPart *part, GstBuffer *unit)
{
    GstClockTime duration = GST_BUFFER_DURATION(unit);
    gsize bytes = gst_buffer_get_size(unit);

    GST_BUFFER_PTS(unit) = part->audio_end;
    GST_BUFFER_DTS(unit) = part->audio_end;
    if (!cam_container_push_audio(part->container, unit))
        return;
    part->audio_end += duration;
    part->bytes += bytes;
}

/* Silence, as long as at least half a unit is missing; the number of units is bounded by the time
 * that passed. */
static void fill(CamRecorder *self, CamPart *part, GstClockTime until)
{
    while (part->audio_end + unit_time(self) / 2 < until) {
        GstClockTime before = part->audio_end;

        append(part, gst_buffer_copy(self->silence));
        if (part->audio_end == before)
            break;
    }
}

void cam_recorder_open_sound_span(CamRecorder *self)
{
    CamSpan *span;

    if (!self->silence)
        return;
    span = g_new0(CamSpan, 1);
    *span = (CamSpan){.from = self->span_from, .at = self->span_at, .part = self->part};
    self->part->open_spans++;
    g_queue_push_tail(&self->spans, span);
}

void cam_recorder_close_sound_span(CamRecorder *self)
{
    CamSpan *span = g_queue_peek_tail(&self->spans);

    if (span)
        span->to = self->span_end;
}

/* The sound of the oldest span is complete. */
static void complete(CamRecorder *self)
{
    CamSpan *span = g_queue_pop_head(&self->spans);
    CamPart *part = span->part;

    fill(self, part, span->at + (span->to - span->from));
    part->open_spans--;
    cam_recorder_finish_if_complete(part);
    g_free(span);
}

/* Takes UNIT, which lies in SPAN. Once a span's sound runs, its units need to be off by more to be
 * moved: their times jitter. */
static void place(CamRecorder *self, CamSpan *span, GstBuffer *unit)
{
    GstClockTime middle = GST_BUFFER_PTS(unit) + GST_BUFFER_DURATION(unit) / 2;
    GstClockTime want = span->at + (middle - span->from);
    GstClockTime have = span->part->audio_end + GST_BUFFER_DURATION(unit) / 2;
    GstClockTime slack = span->begun ? unit_time(self) * 3 / 4 : unit_time(self) / 2;

    if (want + slack < have) {
        gst_buffer_unref(unit);
        return;
    }
    if (want > have + slack)
        fill(self, span->part, want - GST_BUFFER_DURATION(unit) / 2);
    span->begun = TRUE;
    append(span->part, gst_buffer_make_writable(unit));
}

/* FALSE: the oldest unit has to wait. */
static gboolean settle(CamRecorder *self, CamSpan *span, gboolean over)
{
    GstBuffer *unit = g_queue_peek_head(&self->units);
    GstClockTime end = span->to ? span->to : self->span_end, middle;

    if (!unit) {
        if (span->to && (over || cam_now() > span->to + PATIENCE)) {
            complete(self);
            return TRUE;
        }
        /* Nothing comes: the file must not wait. */
        if (end > span->from + PATIENCE)
            fill(self, span->part, span->at + (end - PATIENCE - span->from));
        return FALSE;
    }
    middle = GST_BUFFER_PTS(unit) + GST_BUFFER_DURATION(unit) / 2;
    if (middle >= end) {
        if (!span->to)
            return FALSE;
        complete(self);
        return TRUE;
    }
    g_queue_pop_head(&self->units);
    if (middle < span->from)
        gst_buffer_unref(unit);
    else
        place(self, span, unit);
    return TRUE;
}

void cam_recorder_pump_sound(CamRecorder *self, gboolean over)
{
    CamSpan *span;

    if (self->sound_held)
        return;
    while ((span = g_queue_peek_head(&self->spans)) && settle(self, span, over))
        continue;
    g_cond_broadcast(&self->changed);
}

gboolean cam_recorder_deliver_sound(GstBuffer *unit, gpointer user_data)
{
    CamRecorder *self = user_data;

    g_mutex_lock(&self->lock);
    if (self->sound_over) {
        gst_buffer_unref(unit);
    } else {
        g_queue_push_tail(&self->units, unit);
        if (g_queue_get_length(&self->units) > MAX_WAITING)
            gst_buffer_unref(g_queue_pop_head(&self->units));
        cam_recorder_pump_sound(self, FALSE);
    }
    g_mutex_unlock(&self->lock);
    return TRUE;
}

void cam_recorder_clear_sound(CamRecorder *self)
{
    g_queue_clear_full(&self->units, (GDestroyNotify)gst_buffer_unref);
    g_queue_clear_full(&self->spans, g_free);
    gst_clear_buffer(&self->silence);
}
