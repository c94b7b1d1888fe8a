# Chooses the slot to boot, for RAUC's U-Boot back end: BOOT_ORDER says which slot first, BOOT_<slot>_LEFT how often it may still be tried. A slot that
# cannot be loaded is passed over in the same boot. The board's settings.cmd stands before this.
#
# The variables lie on the partition `bootstate`: two copies of 64 KiB in U-Boot's redundant form (checksum, counter, variables), shared with fw_setenv.
# The newer valid copy counts; the other one is written, so that a torn write costs one change and never the whole.
# `stage` and <slot>_STAGE keep how far the last try came: `loader` before the kernel is in memory, `kernel` when it is started.

# The system takes root and data from the kind of disc that this script came from: another one may bear partitions of the same names.
if test -z "${camera_disk}"; then setenv camera_disk ${devtype}; fi

setenv names "BOOT_ORDER BOOT_A_LEFT BOOT_B_LEFT A_STAGE B_STAGE stage machine_id serial factory_reset trial"
setenv state "${devtype} ${devnum}#bootstate"
setenv size 0x10000
setenv blocks 80
# The RAM disc is loaded over these later.
setexpr copy1 ${ramdisk_addr_r} + 0
setexpr copy2 ${ramdisk_addr_r} + ${size}
setexpr flag1 ${copy1} + 4
setexpr flag2 ${copy2} + 4

setenv valid1 0
setenv valid2 0
if read ${state} ${copy1} 0 ${blocks}; then
  if env import -c ${copy1} ${size} BOOT_ORDER; then setenv valid1 1; fi
fi
if read ${state} ${copy2} ${blocks} ${blocks}; then
  if env import -c ${copy2} ${size} BOOT_ORDER; then setenv valid2 1; fi
fi

# The counter is a byte that wraps: 0 is newer than ff.
setenv counter 0
setenv newest 0
if test ${valid1} = 1; then
  setenv newest 1
  setexpr.b counter *${flag1}
fi
if test ${valid2} = 1; then
  setexpr.b other *${flag2}
  if test ${valid1} = 0; then setenv newest 2
  elif test ${counter} = ff -a ${other} = 0; then setenv newest 2
  elif test ${counter} = 0 -a ${other} = ff; then true
  elif itest ${other} -gt ${counter}; then setenv newest 2
  fi
  if test ${newest} = 2; then setenv counter ${other}; fi
fi
if test ${newest} = 0; then
  # `save` makes it anew with the first try that is counted. Where the partition can be neither read nor written, there is no other place that the system
  # shares: slot A is tried for ever, as long as it can be loaded.
  echo "boot: the environment cannot be read"
  setenv BOOT_ORDER "A B"
  setenv BOOT_A_LEFT 3
  setenv BOOT_B_LEFT 3
else
  if test ${newest} = 1; then env import -c ${copy1} ${size} ${names}; else env import -c ${copy2} ${size} ${names}; fi
fi
if test -z "${BOOT_ORDER}"; then setenv BOOT_ORDER "A B"; fi
if test -z "${BOOT_A_LEFT}"; then setenv BOOT_A_LEFT 3; fi
if test -z "${BOOT_B_LEFT}"; then setenv BOOT_B_LEFT 3; fi

# save: writes the older copy, which becomes the newer.
setenv save1 'setenv newest 1; env export -c -s ${size} ${copy1} ${names}; mw.b ${flag1} ${counter}; write ${state} ${copy1} 0 ${blocks}'
setenv save2 'setenv newest 2; env export -c -s ${size} ${copy2} ${names}; mw.b ${flag2} ${counter}; write ${state} ${copy2} ${blocks} ${blocks}'
setenv save 'setexpr counter ${counter} + 1; setexpr counter ${counter} \\& ff; if test ${newest} = 1; then run save2; else run save1; fi'

# The button, held for five seconds while the board starts, then let go: everything as it left the factory.
if test -n "${camera_button}"; then
  setenv held 1
  for second in 0 1 2 3 4 5; do
    if test ${held} = 1; then
      if button "${camera_button}"; then
        if test ${second} != 5; then sleep 1; fi
      else
        setenv held 0
      fi
    fi
  done
  # Only a button is let go again: a line that nothing pulls up must not empty the board at each start.
  if test ${held} = 1; then
    echo "boot: let go of the button for a factory reset"
    for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
      if test ${held} = 1; then
        if button "${camera_button}"; then
          sleep 1
        else
          setenv held 0
          echo "boot: factory reset asked for by the button"
          setenv factory_reset 1
        fi
      fi
    done
  fi
fi

# load_slot: kernel, device tree and initial RAM disc (where there is one) from ${from}.
setenv load_fdt 'if test -z "${camera_fdt_file}"; then true; else setenv camera_fdt ${fdt_addr_r}; load ${from} ${fdt_addr_r} /boot/${camera_fdt_file}; fi'
setenv load_initrd 'setenv initrd -; if load ${from} ${ramdisk_addr_r} /boot/initrd.img; then setenv initrd ${ramdisk_addr_r}:${filesize}; fi'
setenv load_slot 'load ${from} ${kernel_addr_r} /boot/vmlinuz && run load_fdt'

# start: counts the try and boots ${slot}; comes back where it cannot be loaded.
setenv start 'echo "boot: slot ${slot}, ${left} tries left"; setenv stage loader; setenv ${slot}_STAGE loader; run save; setenv from "${devtype} ${devnum}#${label}"; if run load_slot; then run boot_slot; fi; echo "boot: slot ${slot} cannot be loaded"'
setenv boot_slot 'setenv stage kernel; setenv ${slot}_STAGE kernel; run save; run load_initrd; run arguments; booti ${kernel_addr_r} ${initrd} ${camera_fdt}'
setenv arguments 'setenv bootargs "root=PARTLABEL=${label} camera.disk=${camera_disk} ro rauc.slot=${slot} panic=5 oops=panic quiet console=${camera_console}"; if test -n "${machine_id}"; then setenv bootargs "${bootargs} systemd.machine_id=${machine_id}"; fi; if test "${factory_reset}" = 1; then setenv bootargs "${bootargs} camera.factory_reset=1"; fi'

setenv try_A 'if itest ${BOOT_A_LEFT} -gt 0; then setexpr BOOT_A_LEFT ${BOOT_A_LEFT} - 1; setenv left ${BOOT_A_LEFT}; setenv slot A; setenv label rootfs-a; run start; fi'
setenv try_B 'if itest ${BOOT_B_LEFT} -gt 0; then setexpr BOOT_B_LEFT ${BOOT_B_LEFT} - 1; setenv left ${BOOT_B_LEFT}; setenv slot B; setenv label rootfs-b; run start; fi'

for next in ${BOOT_ORDER}; do
  if test ${next} = A; then run try_A; fi
  if test ${next} = B; then run try_B; fi
done

# Each is counted anew only when its turn comes: what had failed before stays forbidden as long as the first one can be loaded.
echo "boot: no slot is left to try, counting anew"
for next in ${BOOT_ORDER}; do
  setenv BOOT_${next}_LEFT 3
  run try_${next}
done

# Whatever loads is better than nothing.
setenv BOOT_A_LEFT 3
setenv BOOT_B_LEFT 3
run try_A
run try_B
echo "boot: no slot can be loaded"
sleep 10
reset
