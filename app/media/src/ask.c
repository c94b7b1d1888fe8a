#include "ask.h"
#include "events.h"

typedef struct {
    GCond answered;
    gboolean done;
    JsonObject *result;
    int code;
} Ask;

static GMutex lock;
static GHashTable *waiting; /* id → Ask, on the stack of who waits */
static guint64 next_id;
static CamAskSender ask_sender;
static gpointer ask_sender_data;

typedef struct {
    char *id;
    const char *method;
    JsonObject *params;
} Question;

/* With lock held. */
static void finish(Ask *ask, JsonObject *result, int code)
{
    ask->done = TRUE;
    ask->result = result ? json_object_ref(result) : NULL;
    ask->code = code;
    g_cond_signal(&ask->answered);
}

void cam_asks_set_sender(CamAskSender sender, gpointer user_data)
{
    GHashTableIter iter;
    gpointer value;

    g_mutex_lock(&lock);
    if (!waiting)
        waiting = g_hash_table_new(g_str_hash, g_str_equal);
    ask_sender = sender;
    ask_sender_data = user_data;
    g_hash_table_iter_init(&iter, waiting);
    while (!sender && g_hash_table_iter_next(&iter, NULL, &value)) {
        finish(value, NULL, CAM_RPC_INTERNAL);
        g_hash_table_iter_remove(&iter);
    }
    g_mutex_unlock(&lock);
}

static gboolean send_question(gpointer data)
{
    Question *question = data;

    /* Only this thread changes the sender. */
    if (ask_sender)
        ask_sender(question->id, question->method, question->params, ask_sender_data);
    return G_SOURCE_REMOVE;
}

static void question_free(gpointer data)
{
    Question *question = data;

    g_free(question->id);
    json_object_unref(question->params);
    g_free(question);
}

static void wait_for_answer(Ask *ask, const char *id)
{
    gint64 deadline = g_get_monotonic_time() + CAM_ASK_TIMEOUT_MS * 1000;

    while (!ask->done) {
        if (g_cond_wait_until(&ask->answered, &lock, deadline) || ask->done)
            continue;
        g_hash_table_remove(waiting, id);
        ask->code = CAM_RPC_BUSY;
        return;
    }
}

JsonObject *cam_ask(const char *method, JsonObject *params, int *code)
{
    Ask ask = {.code = CAM_RPC_INTERNAL};
    Question *question;
    char id[32];

    g_mutex_lock(&lock);
    if (!ask_sender || g_hash_table_size(waiting) >= CAM_ASK_MAX) {
        *code = ask_sender ? CAM_RPC_BUSY : CAM_RPC_INTERNAL;
        g_mutex_unlock(&lock);
        json_object_unref(params);
        return NULL;
    }
    g_cond_init(&ask.answered);
    g_snprintf(id, sizeof(id), "h%" G_GUINT64_FORMAT, ++next_id);
    g_hash_table_insert(waiting, id, &ask);
    question = g_new(Question, 1);
    *question = (Question){g_strdup(id), method, params};
    cam_main_invoke(send_question, question, question_free);
    wait_for_answer(&ask, id);
    g_mutex_unlock(&lock);
    g_cond_clear(&ask.answered);
    *code = ask.code;
    return ask.result;
}

gboolean cam_asks_answered(const char *id, JsonObject *result, int code)
{
    Ask *ask;

    g_mutex_lock(&lock);
    ask = waiting ? g_hash_table_lookup(waiting, id) : NULL;
    if (ask) {
        finish(ask, result, code);
        g_hash_table_remove(waiting, id);
    }
    g_mutex_unlock(&lock);
    return ask != NULL;
}
