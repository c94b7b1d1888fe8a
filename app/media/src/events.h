/* Events: any part, on any thread, tells the server something. */
#pragma once

#include <json-glib/json-glib.h>

typedef void (*CamEventSink)(const char *method, JsonObject *params, gpointer user_data);

/* Where events go; called on the main thread. NULL drops them. */
void cam_events_set_sink(CamEventSink sink, gpointer user_data);

/* Takes PARAMS. Events that one thread emits arrive in their order. */
void cam_event_emit(const char *method, JsonObject *params);

/* Runs FUNC once on the main loop, in order with the events. */
void cam_main_invoke(GSourceFunc func, gpointer data, GDestroyNotify destroy);
