/* The end of what may take its time, or hang with its device or library: not on the main thread. */
#pragma once

#include <glib.h>

/* Runs END on a thread of its own and then, on the main thread, ENDED and FREE, all with DATA. */
void cam_end_apart(GDestroyNotify end, gpointer data, GDestroyNotify ended, GDestroyNotify free);

/* Something is still on its way out. Main thread. */
gboolean cam_endings_pending(void);
