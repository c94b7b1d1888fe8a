# The device tree is the firmware's: it has the overlays of config.txt and what the firmware found in it
setenv camera_console ttyS0,115200
setenv camera_fdt ${fdt_addr}
setenv camera_button reset
