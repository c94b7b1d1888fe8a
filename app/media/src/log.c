/* The log: one JSON object a line on standard error. */
#include "log.h"

#include <json-glib/json-glib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
/* Read by all threads while the control changes it. */
static _Atomic CamLogLevel max_level = CAM_LOG_INFO;

gboolean cam_log_set_level(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(level_names); i++) {
        if (g_str_equal(name, level_names[i])) {
            max_level = (CamLogLevel)i;
            return TRUE;
        }
    }
    return FALSE;
}

static void append_string(GString *line, const char *text)
{
    g_string_append_c(line, '"');
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(line, "\\%c", *c);
        else if ((guchar)*c < 0x20)
            g_string_append_printf(line, "\\u%04x", (guchar)*c);
        else
            g_string_append_c(line, *c);
    }
    g_string_append_c(line, '"');
}

static void write_line(CamLogLevel level, const char *component, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_autoptr(GString) line = g_string_sized_new(160);
    gsize done = 0;

    g_string_append_printf(line, "{\"level\": \"%s\", \"component\": ", level_names[level]);
    append_string(line, component);
    g_string_append(line, ", \"msg\": ");
    append_string(line, valid);
    g_string_append(line, "}\n");
    /* One write per line, so that lines of several threads do not mix. A log that cannot be
     * written (the reader is gone) must not stop the video. */
    while (done < line->len) {
        gssize n = write(STDERR_FILENO, line->str + done, line->len - done);
        if (n <= 0)
            break;
        done += (gsize)n;
    }
}

void cam_log(CamLogLevel level, const char *component, const char *format, ...)
{
    va_list args;
    g_autofree char *text = NULL;

    if (level > max_level)
        return;
    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    write_line(level, component, text);
}

static GLogWriterOutput glib_writer(GLogLevelFlags flags, const GLogField *fields, gsize n_fields,
                                    gpointer user_data)
{
    const char *message = "", *domain = "glib";
    CamLogLevel level = CAM_LOG_DEBUG;

    if (flags & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
        level = CAM_LOG_ERROR;
    else if (flags & G_LOG_LEVEL_WARNING)
        level = CAM_LOG_WARN;
    for (gsize i = 0; i < n_fields; i++) {
        if (g_str_equal(fields[i].key, "MESSAGE"))
            message = fields[i].value;
        else if (g_str_equal(fields[i].key, "GLIB_DOMAIN"))
            domain = fields[i].value;
    }
    if (level <= max_level)
        write_line(level, domain, message);
    return G_LOG_WRITER_HANDLED;
}

void cam_log_capture_glib(void)
{
    g_log_set_writer_func(glib_writer, NULL, NULL);
}
