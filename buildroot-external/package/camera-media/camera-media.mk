################################################################################
#
# camera-media
#
################################################################################

CAMERA_MEDIA_VERSION = $(shell sed -n "s/.*version: '\([0-9.]*\)',.*/\1/p" \
	$(BR2_EXTERNAL_CAMERA_PATH)/../app/media/meson.build | head -n 1)
CAMERA_MEDIA_SITE = $(BR2_EXTERNAL_CAMERA_PATH)/../app/media
CAMERA_MEDIA_SITE_METHOD = local
CAMERA_MEDIA_LICENSE = MIT
# Warnings of a compiler that our sources were not written with are no errors.
CAMERA_MEDIA_CONF_OPTS = -Dwerror=false
CAMERA_MEDIA_DEPENDENCIES = \
	host-pkgconf \
	gst1-plugins-base \
	gst1-rtsp-server \
	gstreamer1 \
	jpeg \
	json-glib \
	libglib2

$(eval $(meson-package))
