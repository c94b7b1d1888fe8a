#!/bin/bash
# post-image.sh BINARIES_DIR BOARD: run by Buildroot when the root file system is there. Makes the boot loader's script and first state, the disk image and
# the signed update bundle, in BINARIES_DIR.
set -euo pipefail
COMMON=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$COMMON/release.sh"
images=$1
board "$2"
keys
version
[ -f "$images/rootfs.squashfs" ] || fail "no $images/rootfs.squashfs"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One slot has this room; see genimage/partitions.cfg.
size=$(stat -c %s "$images/rootfs.squashfs")
[ "$size" -le $((256 * 1024 * 1024)) ] || fail "rootfs.squashfs has $size bytes, a slot 256 MiB"

case $LOADER in
  grub)
    cp "$COMMON/grub/grub.cfg" "$images/grub.cfg"
    # GRUB's environment block: text, filled up with # to 1024 bytes.
    printf '# GRUB Environment Block\nORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=0\nB_TRY=0\n' >"$work/grubenv"
    { cat "$work/grubenv" && head -c 1024 /dev/zero | tr '\0' '#'; } | head -c 1024 >"$images/grubenv"
    ;;
  uboot)
    cat "$BOARD_DIR/settings.cmd" "$COMMON/uboot/boot.cmd" >"$work/boot.cmd"
    mkimage -A arm64 -T script -C none -n boot -d "$work/boot.cmd" "$images/boot.scr" >/dev/null
    # Two copies of 64 KiB, redundant form; see boot.cmd and fw_env.config.
    mkenvimage -r -s 0x10000 -o "$work/env" "$COMMON/uboot/bootstate.txt"
    cat "$work/env" "$work/env" >"$images/bootstate.img"
    ;;
  *) fail "no boot loader: $LOADER" ;;
esac

case $SEA_ARCH in
  x64) ROOT_TYPE=4f68bce3-e8cd-4db1-96e7-fbcaf984b709 ;;
  arm64) ROOT_TYPE=b921b045-1df0-41c3-af44-4c6f280d3fae ;;
  *) fail "no architecture: $SEA_ARCH" ;;
esac
export ROOT_TYPE
mkdir "$work/root"
genimage --rootpath "$work/root" --tmppath "$work/tmp" --inputpath "$images" --outputpath "$images" \
  --includepath "$BOARD_DIR:$COMMON/genimage" --config genimage.cfg >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'genimage failed'; }

mkdir "$work/bundle"
ln "$images/rootfs.squashfs" "$work/bundle/" 2>/dev/null || cp "$images/rootfs.squashfs" "$work/bundle/"
sed "s/@COMPATIBLE@/$COMPATIBLE/; s/@VERSION@/$VERSION/" "$COMMON/rauc/manifest.raucm.in" >"$work/bundle/manifest.raucm"
rm -f "$images/update.raucb"
rauc bundle --cert="$CERTIFICATE" --key="$KEY" --mksquashfs-args='-noD -noF -noI' "$work/bundle" "$images/update.raucb" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail 'rauc failed'; }
rauc info --keyring="$CA" "$images/update.raucb" >/dev/null 2>&1 || fail 'the bundle is not signed by what the image trusts'
