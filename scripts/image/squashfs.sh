#!/bin/bash
# squashfs.sh TREE OUT VERSION [LEVEL]: TREE as squashfs, with VERSION in its /etc/camera-release. gzip, since GRUB reads the kernel out of it.
set -euo pipefail

tree=$1 out=$2 version=$3 level=${4:-6}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed "s/^VERSION=.*/VERSION=$version/" "$tree/etc/camera-release" >"$work/camera-release"
rm -f "$out.new"
mksquashfs "$tree" "$out.new" -noappend -quiet -no-progress -no-xattrs -comp gzip -Xcompression-level "$level" \
  -p "etc/camera-release f 644 0 0 cat $work/camera-release" -e etc/camera-release
mv -f "$out.new" "$out"
