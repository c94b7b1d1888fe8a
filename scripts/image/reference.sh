#!/bin/bash
# Builds the reference image (x86-64, UEFI) out of Debian packages, our overlay and our executables, into build/image/reference-x86_64.
# By the environment: VERSION (package.json's), CHANNEL (development, or release), KEYS (build/keys; see keys.sh), SIGNING_KEY (KEYS/signing.key.pem, or
# a PKCS#11 URI).
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

export VERSION=${VERSION:-$(node -p 'require("./package.json").version')}
export CHANNEL=${CHANNEL:-development}
export KEYS=${KEYS:-build/keys}
[ "$(id -u)" = 0 ] || { echo "this has to run as root: file owners and chroot" >&2; exit 1; }
case $CHANNEL in
  development) scripts/image/keys.sh "$KEYS" ;;
  release)
    for certificate in ca signing; do
      subject=$(openssl x509 -in "$KEYS/$certificate.cert.pem" -noout -subject)
      case $subject in *development*) echo "a release is not signed with a development key: $subject" >&2; exit 1 ;; esac
    done
    ;;
  *) echo "CHANNEL is development or release, not $CHANNEL" >&2; exit 2 ;;
esac

mkdir -p "$OUT" "$CACHE"
# What an interrupted run has left; should something still be mounted in there, it is not gone into.
find "$CACHE" -maxdepth 1 -name '*.new' -exec rm -rf --one-file-system {} +
scripts/image/rootfs.sh "$OUT/rootfs"
scripts/image/squashfs.sh "$OUT/rootfs" "$OUT/rootfs.squashfs" "$VERSION"
step "squashfs: $(mib "$(stat -c %s "$OUT/rootfs.squashfs")")"

work=$OUT/work
rm -rf "$work"
mkdir -p "$work"/{root,tmp,out}
scripts/image/grub.sh "$work/in"
ln "$OUT/rootfs.squashfs" "$work/in/rootfs.squashfs"
quietly genimage --config "$BOARD_DIR/genimage.cfg" --rootpath "$work/root" --tmppath "$work/tmp" --inputpath "$work/in" --outputpath "$work/out"
mv -f "$work/out/disk.img" "$OUT/disk.img"
rm -rf "$work"
step "disk: $(mib "$(stat -c %s "$OUT/disk.img")"), $(mib "$(($(stat -c %b "$OUT/disk.img") * 512))") in use"

scripts/image/bundle.sh --squashfs "$OUT/rootfs.squashfs" --version "$VERSION" --out "$OUT/update.raucb" \
  --cert "$KEYS/signing.cert.pem" --key "${SIGNING_KEY:-$KEYS/signing.key.pem}"
step "update bundle: $(mib "$(stat -c %s "$OUT/update.raucb")")"

scripts/image/sizes.sh "$OUT"
(cd "$OUT" && sha256sum disk.img rootfs.squashfs update.raucb >SHA256SUMS)
step "done: $OUT"
