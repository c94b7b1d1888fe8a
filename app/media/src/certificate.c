#include "certificate.h"

#include <errno.h>

gboolean cam_certificates_work(void)
{
    return g_tls_backend_supports_tls(g_tls_backend_get_default());
}

static gboolean readable(const char *file, int *error_number, char **message)
{
    g_autofree char *text = NULL;

    errno = 0;
    if (g_file_get_contents(file, &text, NULL, NULL))
        return TRUE;
    *error_number = errno ? errno : EIO;
    *message = g_strdup(file);
    return FALSE;
}

GTlsCertificate *cam_certificate_load(const char *file, const char *key_file, int *error_number,
                                      char **message)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *key = NULL;
    GTlsCertificate *certificate;

    *error_number = 0;
    if (!readable(file, error_number, message) ||
        (key_file && !readable(key_file, error_number, message)))
        return NULL;
    certificate = g_tls_certificate_new_from_files(file, key_file ? key_file : file, &error);
    if (!certificate)
        *message = g_strdup(error->message);
    return certificate;
}
