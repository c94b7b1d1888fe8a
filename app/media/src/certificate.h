/* Loads certificates for TLS. */
#pragma once

#include <gio/gio.h>

/* FALSE: GLib found no TLS library. */
gboolean cam_certificates_work(void);

/* PEM files; KEY_FILE NULL: the key is in FILE too. NULL: *message tells why, and *error_number is
 * not 0 when a file could not be read. */
GTlsCertificate *cam_certificate_load(const char *file, const char *key_file, int *error_number,
                                      char **message);
