/* For tests of what happens in the main loop or in threads. */
#pragma once

#include <glib.h>

/* Turns the main loop until CONDITION or 10 s. */
static inline gboolean wait_for(gboolean (*condition)(gpointer), gpointer data)
{
    gint64 deadline = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;

    while (!condition(data) && g_get_monotonic_time() < deadline) {
        if (!g_main_context_iteration(NULL, FALSE))
            g_usleep(1000);
    }
    return condition(data);
}
