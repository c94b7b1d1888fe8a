#!/bin/bash
# Makes a signed update bundle (RAUC, verity format) of a root file system.
#   bundle.sh --root TREE | --squashfs FILE  --version V --out FILE [--compatible NAME] [--cert FILE --key FILE] [--fast]
# With --root, TREE/etc/camera-release gets V in the bundle, TREE itself stays as it is; --fast compresses little. The key may be a PKCS#11 URI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

usage() {
  sed -n '3s/^# */usage: /p' "$0" >&2
  exit 2
}

root='' squashfs='' version='' out='' cert=build/keys/signing.cert.pem key=build/keys/signing.key.pem compatible=camera-server-$BOARD level=6
while [ $# -gt 0 ]; do
  case $1 in
    --fast) level=1; shift; continue ;;
    --root | --squashfs | --version | --out | --cert | --key | --compatible) [ $# -ge 2 ] || usage ;;
    *) usage ;;
  esac
  declare "${1#--}=$2"
  shift 2
done
if [ -z "$version" ] || [ -z "$out" ]; then usage; fi
[[ $version =~ ^[0-9A-Za-z.+~-]{1,64}$ ]] || { echo "not a version: $version" >&2; exit 2; }
case ${root:+root}:${squashfs:+squashfs} in
  root:) [ -f "$root/etc/camera-release" ] || { echo "no root file system of ours: $root" >&2; exit 1; } ;;
  :squashfs) [ -f "$squashfs" ] || { echo "no $squashfs" >&2; exit 1; } ;;
  *) usage ;;
esac

mkdir -p "$(dirname "$out")"
# Beside the result: the same file system, so that nothing has to be copied.
work=$(mktemp -d -p "$(dirname "$out")" .bundle.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/content"
if [ -n "$root" ]; then
  scripts/image/squashfs.sh "$root" "$work/content/rootfs.squashfs" "$version" "$level"
else
  ln "$squashfs" "$work/content/rootfs.squashfs" 2>/dev/null || cp "$squashfs" "$work/content/rootfs.squashfs"
fi
cat >"$work/content/manifest.raucm" <<MANIFEST
[update]
compatible=$compatible
version=$version

[bundle]
format=verity

[image.rootfs]
filename=rootfs.squashfs
MANIFEST
# What is in it is compressed already: the bundle itself stores it as it is.
quietly rauc bundle --cert="$cert" --key="$key" --mksquashfs-args='-noD -noF -noI' "$work/content" "$work/bundle.raucb"
mv -f "$work/bundle.raucb" "$out"
