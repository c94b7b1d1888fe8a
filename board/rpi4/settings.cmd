# The device tree is the firmware's: it has the overlays of config.txt and what the firmware found in it
# The kernel is built to make no UART of this kind unless it is told how many
setenv camera_console "ttyS0,115200 8250.nr_uarts=1"
setenv camera_fdt ${fdt_addr}
setenv camera_button reset
