/* For tests of what happens in the main loop or in threads. */
#pragma once

#include <glib.h>

/* Turns the main loop until CONDITION, or SECONDS are over. */
static inline gboolean wait_at_most(int seconds, gboolean (*condition)(gpointer), gpointer data)
{
    gint64 deadline = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;

    while (!condition(data) && g_get_monotonic_time() < deadline) {
        if (!g_main_context_iteration(NULL, FALSE))
            g_usleep(1000);
    }
    return condition(data);
}

static inline gboolean wait_for(gboolean (*condition)(gpointer), gpointer data)
{
    return wait_at_most(10, condition, data);
}

/* Longer than a codec may be silent and take to end. */
static inline gboolean wait_long(gboolean (*condition)(gpointer), gpointer data)
{
    return wait_at_most(20, condition, data);
}
