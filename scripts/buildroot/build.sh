#!/bin/bash
# build.sh image|config|menuconfig BOARD: builds the firmware of a board with Buildroot, out of tree in build/buildroot/BOARD.
#   BUILDROOT_DIR   a Buildroot tree; without it the pinned release is fetched once, by the hash of its commit
#   BR2_DL_DIR      downloads, kept between builds (default build/buildroot/dl)
#   BR2_CCACHE_DIR  compiler cache (default build/buildroot/ccache)
#   CHANNEL         development (default) or release, which takes no development keys; KEYS: folder of the keys (default build/keys)
#   SIGNING_KEY     instead of KEYS/signing.key.pem: a file, or the pkcs11: URI of a key in a token
#   VERSION         of the release (default: package.json's)
# Results in build/image/BOARD: the disk image (.xz), BOARD-VERSION.raucb, sbom.cdx.json, licences.csv,
#   camera-server.licenses.txt, SHA256SUMS.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  echo "usage: $0 image|config|menuconfig BOARD, where BOARD is one of: $(cd board && echo */board.env | sed 's|/board.env||g')" >&2
  exit 2
}
task=${1:-} board=${2:-}
[[ $board =~ ^[a-z0-9_-]+$ && -f board/$board/board.env ]] || usage
# shellcheck source=/dev/null
. "board/$board/board.env"

top=$PWD
out=$top/build/buildroot/$board
tree=${BUILDROOT_DIR:-}
if [ -z "$tree" ]; then tree=$(scripts/buildroot/fetch.sh); fi
[ -f "$tree/support/scripts/check-dotconfig.py" ] || { echo "no Buildroot tree: $tree" >&2; exit 1; }

export BR2_DL_DIR=${BR2_DL_DIR:-$top/build/buildroot/dl}
export BR2_CCACHE_DIR=${BR2_CCACHE_DIR:-$top/build/buildroot/ccache}
mkdir -p "$out" "$BR2_DL_DIR" "$BR2_CCACHE_DIR"
# Buildroot builds in one process per package and must not inherit the flags of our own make.
unset MAKEFLAGS MFLAGS MAKELEVEL
# The build's moment is that of our sources; without it Buildroot takes its own.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
# Where root builds, GNU tar's configure wants to hear that this is meant.
if [ "$(id -u)" = 0 ]; then export FORCE_UNSAFE_CONFIGURE=1; fi
br() { make -C "$tree" BR2_EXTERNAL="$top/buildroot-external" O="$out" "$@"; }

configure() {
  br --silent "$DEFCONFIG" >/dev/null
  python3 "$tree/support/scripts/check-dotconfig.py" "$out/.config" "buildroot-external/configs/$DEFCONFIG"
}

case $task in
  config)
    configure
    echo "$out/.config"
    ;;
  menuconfig)
    [ -f "$out/.config" ] || configure
    br menuconfig
    br --silent savedefconfig "BR2_DEFCONFIG=$top/buildroot-external/configs/$DEFCONFIG"
    ;;
  image)
    CAMERA_KEYS=$(realpath -m "${KEYS:-build/keys}")
    export CAMERA_KEYS CAMERA_CHANNEL=${CHANNEL:-development}
    if [ -n "${VERSION:-}" ]; then export CAMERA_VERSION=$VERSION; fi
    case ${SIGNING_KEY:-} in
      '') ;;
      pkcs11:*) export CAMERA_SIGNING_KEY=$SIGNING_KEY ;;
      *) CAMERA_SIGNING_KEY=$(realpath -m "$SIGNING_KEY") && export CAMERA_SIGNING_KEY ;;
    esac
    # Asked now, not after hours of building.
    scripts/buildroot/check-keys.sh
    # Buildroot takes nothing away that an earlier build has put in: a release is made from nothing.
    if [ "$CAMERA_CHANNEL" = release ]; then rm -rf "$out" && mkdir -p "$out"; fi
    configure
    # Ours are built anew each time: Buildroot does not look whether their sources have changed.
    br --silent camera-server-dirclean camera-media-dirclean
    br
    scripts/buildroot/collect.sh "$tree" "$board" "$out"
    ;;
  *) usage ;;
esac
