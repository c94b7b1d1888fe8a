# The device tree lies in the slot, beside its kernel
setenv camera_console ttyS2,1500000
setenv camera_fdt_file rk3399-rockpro64.dtb
setenv camera_button "GPIO Key Power"
# U-Boot counts the eMMC first; the kernel may count otherwise
if test "${devtype}${devnum}" = mmc0; then setenv camera_disk emmc; fi
if test "${devtype}${devnum}" = mmc1; then setenv camera_disk sd; fi
