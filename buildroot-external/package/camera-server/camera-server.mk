################################################################################
#
# camera-server
#
################################################################################

# "make sea" has made the executable and its licence record; there is nothing
# to download and nothing to build.
CAMERA_SERVER_VERSION = $(shell sed -n 's/^  "version": "\([^"]*\)".*/\1/p' \
	$(BR2_EXTERNAL_CAMERA_PATH)/../package.json)
CAMERA_SERVER_SOURCE =
CAMERA_SERVER_LICENSE = MIT and others (Node.js and npm packages)
CAMERA_SERVER_LICENSE_FILES = camera-server.licenses.txt
CAMERA_SERVER_DIST = $(BR2_EXTERNAL_CAMERA_PATH)/../dist
CAMERA_SERVER_ARCH = $(if $(BR2_x86_64),x64,arm64)

define CAMERA_SERVER_EXTRACT_CMDS
	$(INSTALL) -m 0755 $(CAMERA_SERVER_DIST)/camera-server-$(CAMERA_SERVER_ARCH) \
		$(@D)/camera-server
	$(INSTALL) -m 0644 $(CAMERA_SERVER_DIST)/camera-server-$(CAMERA_SERVER_ARCH).licenses.txt \
		$(@D)/camera-server.licenses.txt
endef

define CAMERA_SERVER_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/camera-server \
		$(TARGET_DIR)/usr/bin/camera-server
	$(INSTALL) -D -m 0644 $(@D)/camera-server.licenses.txt \
		$(TARGET_DIR)/usr/share/licenses/camera-server.licenses.txt
endef

$(eval $(generic-package))
