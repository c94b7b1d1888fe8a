#include "ending.h"
#include "events.h"

typedef struct {
    GDestroyNotify end, ended, free;
    gpointer data;
} Ending;

static int pending; /* atomic */

gboolean cam_endings_pending(void)
{
    return g_atomic_int_get(&pending) > 0;
}

static gboolean over(gpointer data)
{
    Ending *ending = data;

    ending->ended(ending->data);
    return G_SOURCE_REMOVE;
}

static void ending_free(gpointer data)
{
    Ending *ending = data;

    ending->free(ending->data);
    g_free(ending);
    g_atomic_int_add(&pending, -1);
}

static gpointer run(gpointer data)
{
    Ending *ending = data;

    ending->end(ending->data);
    cam_main_invoke(over, ending, ending_free);
    return NULL;
}

void cam_end_apart(GDestroyNotify end, gpointer data, GDestroyNotify ended, GDestroyNotify free)
{
    Ending *ending = g_new(Ending, 1);

    *ending = (Ending){end, ended, free, data};
    g_atomic_int_inc(&pending);
    g_thread_unref(g_thread_new("ending", run, ending));
}
