#!/bin/bash
# prune.sh BASE FILE…: makes a copy of the package tree BASE that holds only what the lists in the board's folder keep, and prints its name. The FILEs
# are executables that come into the tree later: what they need stays. Made once for the same lists and needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh
shopt -s nullglob

base=$1
shift
lists=("$BOARD_DIR"/{keep-folders,keep-libraries,remove,gstreamer-plugins,modules}.txt)
needs=$(readelf -dW "$@" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | sort -u)
tree=$CACHE/pruned-$(key <(echo "$base" "$needs") "${lists[@]}" scripts/image/{prune.sh,libraries.ts,elf.ts})
[ ! -d "$tree" ] || { echo "$tree"; exit; }

new=$tree.new
rm -rf "$new"
cp -a "$base" "$new"
lib=$new/usr/lib/x86_64-linux-gnu
kernel=$(basename "$new"/usr/lib/modules/*)
mv "$new/boot/vmlinuz-$kernel" "$new/kernel.kept"

# Folders that many packages fill: only what is listed.
kept=$(list "$BOARD_DIR/keep-folders.txt")
for entry in "$new"/usr/share/* "$new"/usr/lib/*; do
  grep -qxF "${entry#"$new/"}" <<<"$kept" || rm -rf "$entry"
done
for entry in "$lib"/*/; do
  entry=${entry%/}
  [ -L "$entry" ] || grep -qxF "${entry#"$new/"}" <<<"$kept" || rm -rf "$entry"
done
rm -rf "$new"/usr/share/zoneinfo/{right,posix}

# GLib's modules: TLS only.
find "$lib/gio/modules" -type f ! -name libgiognutls.so -delete

# GStreamer: gst-inspect stays until the registry is made.
plugins=$(list "$BOARD_DIR/gstreamer-plugins.txt")
for file in "$lib"/gstreamer-1.0/*; do
  name=${file##*/libgst}
  grep -qxF "${name%.so}" <<<"$plugins" || rm -rf "$file"
done
for name in $plugins; do
  [ -e "$lib/gstreamer-1.0/libgst$name.so" ] || { echo "no GStreamer plugin $name" >&2; exit 1; }
done
find "$new/usr/bin" -name 'gst-*' ! -name gst-inspect-1.0 -delete

# Kernel modules: those listed with what they depend on.
modules=$new/usr/lib/modules/$kernel
mv "$modules/kernel" "$modules/all"
files=$(scripts/image/modules.sh "$base" "$kernel" "$BOARD_DIR/modules.txt")
while read -r file; do
  mkdir -p "$(dirname "$modules/kernel/$file")"
  mv "$modules/all/$file" "$modules/kernel/$file"
done <<<"$files"
rm -rf "$modules/all" "$modules"/{build,source}
chroot "$new" depmod -a "$kernel"

while read -r pattern; do
  # shellcheck disable=SC2086 # patterns are meant to spread
  rm -rf "${new:?}"/$pattern
done < <(list "$BOARD_DIR/remove.txt")
mv "$new/kernel.kept" "$new/boot/vmlinuz"

node --import tsx scripts/image/libraries.ts prune "$new" "$BOARD_DIR/keep-libraries.txt" "$@" >&2
node --import tsx scripts/image/libraries.ts check "$new" >&2
mv "$new" "$tree"
forget_others "$CACHE/pruned-" "$tree"
echo "$tree"
