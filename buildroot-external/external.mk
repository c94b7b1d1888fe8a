include $(sort $(wildcard $(BR2_EXTERNAL_CAMERA_PATH)/package/*/*.mk))
