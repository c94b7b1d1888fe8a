#include "events.h"

static CamEventSink event_sink;
static gpointer event_sink_data;

typedef struct {
    const char *method;
    JsonObject *params;
} Event;

void cam_events_set_sink(CamEventSink sink, gpointer user_data)
{
    event_sink = sink;
    event_sink_data = user_data;
}

static gboolean deliver(gpointer data)
{
    Event *event = data;

    if (event_sink)
        event_sink(event->method, event->params, event_sink_data);
    return G_SOURCE_REMOVE;
}

static void event_free(gpointer data)
{
    Event *event = data;

    json_object_unref(event->params);
    g_free(event);
}

void cam_main_invoke(GSourceFunc func, gpointer data, GDestroyNotify destroy)
{
    /* Always through the queue, also from the main thread: an event never overtakes another, and
     * never runs inside a caller's locks. */
    g_idle_add_full(G_PRIORITY_DEFAULT, func, data, destroy);
}

void cam_event_emit(const char *method, JsonObject *params)
{
    Event *event = g_new(Event, 1);

    *event = (Event){.method = method, .params = params};
    cam_main_invoke(deliver, event, event_free);
}
