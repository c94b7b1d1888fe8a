#!/bin/bash
# initrd.sh TREE OUT: the initial RAM disc: busybox, our init, the drivers of discs, squashfs and watchdogs. It is not compressed: the squashfs that it
# lies in is.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

tree=$1 out=$2
kernel=$(basename "$tree"/usr/lib/modules/*)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/bin" "$work/root/modules"
cp "$tree/usr/bin/busybox" "$work/root/bin/busybox"
install -m 755 board/common/initrd/init "$work/root/init"

# add LIST ORDER: unpacks the modules of LIST and writes the order to load them to ORDER.
add() {
  local files file name
  files=$(scripts/image/modules.sh "$tree" "$kernel" "$1")
  while read -r file; do
    name=$(basename "$file" .xz)
    xz -dc "$tree/usr/lib/modules/$kernel/kernel/$file" >"$work/root/modules/$name"
    echo "$name"
  done <<<"$files" >"$2"
}

# one_by_one LIST PREFIX: an order of its own for each module of LIST, numbered.
one_by_one() {
  local number=10 name
  while read -r name; do
    add <(echo "$name") "$work/root/modules/$2.$number"
    number=$((number + 1))
  done < <(list "$1")
}

add <(echo squashfs watchdog) "$work/root/modules/first"
one_by_one "$BOARD_DIR/initrd-modules.txt" disc
one_by_one "$BOARD_DIR/watchdog-modules.txt" watchdog

find "$work/root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
(cd "$work/root" && find . -print0 | LC_ALL=C sort -z | cpio --null --create --format newc --owner 0:0 --reproducible --quiet) >"$out"
