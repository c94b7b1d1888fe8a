#!/bin/bash
# collect.sh BUILDROOT_DIR BOARD OUTPUT: puts what a build gave into build/image/BOARD: compressed image, bundle, SBOM, licences, sums.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$1 board=$2 output=$3
# shellcheck source=/dev/null
. "board/$board/board.env"
version=$(sed -n 's/^VERSION=//p' "$output/target/etc/camera-release")
results=build/image/$board
rm -rf "$results.new"
mkdir -p "$results.new"

xz --threads=0 -6 --stdout "$output/images/$IMAGE" >"$results.new/$IMAGE.xz"
if [ -n "${FIRMWARE:-}" ]; then cp "$output/images/$FIRMWARE" "$results.new/"; fi
cp "$output/images/update.raucb" "$results.new/$board-$version.raucb"
make --silent -C "$tree" BR2_EXTERNAL="$PWD/buildroot-external" O="$output" show-info >"$output/packages.json"
python3 scripts/buildroot/sbom.py "$output/packages.json" package-lock.json "camera-server-$board" "$version" "$(node -p "require('./package.json').config.node")" >"$results.new/sbom.cdx.json"
python3 scripts/buildroot/licences.py "$results.new/sbom.cdx.json" >"$results.new/licences.csv"
cp "dist/camera-server-$SEA_ARCH.licenses.txt" "$results.new/camera-server.licenses.txt"
(cd "$results.new" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
rm -rf "$results"
mv "$results.new" "$results"
ls -l "$results"
