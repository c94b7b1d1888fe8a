# QEMU's virt machine: the device tree is QEMU's own
setenv camera_console ttyAMA0,115200
setenv camera_fdt ${fdtcontroladdr}
