#!/bin/bash
# post-build.sh TARGET_DIR BOARD: run by Buildroot before the file systems are made. Fills in what depends on the build, makes the initial RAM disc, takes
# away what the appliance has no use for. May run again over its own result.
set -euo pipefail
COMMON=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$COMMON/release.sh"
target=$1
board "$2"
keys
version

# The kernel under the name that the boot loader knows.
if [ -f "$target/boot/$KERNEL" ]; then mv -f "$target/boot/$KERNEL" "$target/boot/vmlinuz"; fi
[ -f "$target/boot/vmlinuz" ] || fail "no kernel in $target/boot"

# kept PATTERN FRAGMENT…: the build has lost nothing of them. The folder of a version before may be there still: the newest counts.
kept() {
  local pattern=$1 config newest=''
  shift
  # shellcheck disable=SC2231 # a pattern
  for config in "${BUILD_DIR:-/nonexistent}"/$pattern/.config; do
    if [ "$config" -nt "$newest" ]; then newest=$config; fi
  done
  [ -z "$newest" ] || "$COMMON/check-fragments.sh" "$newest" "$@"
}
kept 'linux-[0-9a-f]*' "$COMMON/linux.fragment" "$BOARD_DIR/linux.fragment"
kept 'uboot-[0-9]*' "$COMMON/uboot.fragment" "$BOARD_DIR/uboot.fragment"
kept 'busybox-[0-9]*' "$COMMON/busybox.fragment"

# What this release is.
built=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
cat >"$target/etc/camera-release" <<RELEASE
VERSION=$VERSION
BUILD=$built
COMPATIBLE=$COMPATIBLE
BOARD=$BOARD
CHANNEL=$CHANNEL
RELEASE
sed -i "s/@COMPATIBLE@/$COMPATIBLE/" "$target/etc/rauc/system.conf"
grep -qx "compatible=$COMPATIBLE" "$target/etc/rauc/system.conf" || fail 'etc/rauc/system.conf is of another board'
install -m 644 "$CA" "$target/etc/rauc/keyring.pem"

# Where things are mounted; the root itself is read-only.
mkdir -p "$target"/{data,media,boot/state,var,tmp,run,dev,proc,sys}
# Made by the running system, or not wanted: networks of Buildroot's own, keys, identities, modules of GRUB (they are built into its image).
rm -rf "$target"/etc/ssh/ssh_host_* "$target"/etc/systemd/network/* "$target"/usr/lib/grub "$target"/lib/grub "$target"/boot/grub
: >"$target/etc/machine-id"
ln -sfn /run/systemd/resolve/stub-resolv.conf "$target/etc/resolv.conf"
# Only /data/system/ssh/enabled starts the SSH server, by a unit of ours.
rm -f "$target"/usr/lib/systemd/system/sshd.service "$target"/etc/systemd/system/*/sshd.service

"$COMMON/initrd.sh" "$target" "$target/boot/initrd.img"
