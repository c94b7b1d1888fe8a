#!/bin/bash
# initrd.sh TARGET_DIR OUT: the initial RAM disc of a Buildroot system: busybox with its libraries and initrd/init, which starts the hardware watchdog before
# anything can hang. All drivers that it needs are built into the kernel. Not compressed: the squashfs that it lies in is.
set -euo pipefail
COMMON=$(cd "$(dirname "$0")" && pwd)
target=$1
out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/root"/{bin,modules}
install -m 755 "$COMMON/initrd/init" "$work/root/init"
install -m 755 "$target/bin/busybox" "$work/root/bin/busybox"
# No drivers to load.
: >"$work/root/modules/first"
# The programs name their interpreter by a path that may lead over such a link.
mkdir -p "$work/root/usr/lib"
for link in lib lib64 usr/lib64; do
  [ ! -L "$target/$link" ] || cp -P "$target/$link" "$work/root/$link"
done

# add NAME: a library with what it needs, at the place where the target has it.
add() {
  local folder
  for folder in lib lib64 usr/lib usr/lib64; do
    [ -f "$target/$folder/$1" ] || continue
    [ ! -f "$work/root/$folder/$1" ] || return 0
    install -D -m 755 "$target/$folder/$1" "$work/root/$folder/$1"
    libraries "$target/$folder/$1"
    return 0
  done
  echo "initrd.sh: no $1 in $target" >&2
  return 1
}

# libraries ELF: its interpreter and libraries. readelf of the machine reads all architectures.
libraries() {
  local name
  while read -r name; do
    add "$name"
  done < <(LC_ALL=C readelf --wide --program-headers --dynamic "$1" 2>/dev/null |
    sed -nE 's/.*Requesting program interpreter: .*\/([^]]*)\].*/\1/p; s/.*\(NEEDED\).*\[(.*)\].*/\1/p')
}
libraries "$target/bin/busybox"

find "$work/root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
(cd "$work/root" && find . -print0 | LC_ALL=C sort -z | cpio --null --create --format newc --owner 0:0 --reproducible --quiet) >"$out.new"
mv -f "$out.new" "$out"
