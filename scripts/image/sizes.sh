#!/bin/bash
# sizes.sh FOLDER: writes FOLDER/sizes.json: what the image's parts weigh, in bytes. Fails where the root file system is over its budget.
set -euo pipefail

BUDGET=$((160 * 1000 * 1000))

folder=$1
bytes() { stat -c %s "$1"; }
within() { du -sb --apparent-size "$@" | awk '{ sum += $1 } END { print sum + 0 }'; }

tree=$folder/rootfs
squashfs=$(bytes "$folder/rootfs.squashfs")
cat >"$folder/sizes.json.new" <<JSON
{
  "squashfs": $squashfs,
  "squashfs_budget": $BUDGET,
  "bundle": $(bytes "$folder/update.raucb"),
  "disk": $(bytes "$folder/disk.img"),
  "disk_in_use": $(($(stat -c %b "$folder/disk.img") * 512)),
  "files": $(within "$tree"),
  "kernel": $(bytes "$tree/boot/vmlinuz"),
  "initrd": $(bytes "$tree/boot/initrd.img"),
  "kernel_modules": $(within "$tree/usr/lib/modules"),
  "camera_server": $(bytes "$tree/usr/bin/camera-server"),
  "camera_media": $(bytes "$tree/usr/bin/camera-media"),
  "gstreamer_plugins": $(within "$tree/usr/lib/x86_64-linux-gnu/gstreamer-1.0"),
  "libraries": $(within "$tree/usr/lib/x86_64-linux-gnu")
}
JSON
mv -f "$folder/sizes.json.new" "$folder/sizes.json"
[ "$squashfs" -le "$BUDGET" ] || { echo "the root file system is over its budget: $squashfs of $BUDGET bytes" >&2; exit 1; }
