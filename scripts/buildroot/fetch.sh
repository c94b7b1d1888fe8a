#!/bin/bash
# fetch.sh: the pinned Buildroot release below build/buildroot, fetched where it is not there yet; prints its folder. It is pinned by the hash of its commit,
# which git checks: whatever the server sends, no other tree comes out of it.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=2025.02.16
commit=135af563b945b8c3d18f8fd370370075b9edb140
source=${BUILDROOT_URL:-https://gitlab.com/buildroot.org/buildroot.git}
folder=$PWD/build/buildroot/buildroot-$version

if [ ! -d "$folder" ]; then
  mkdir -p build/buildroot
  work=$(mktemp -d -p build/buildroot)
  trap 'rm -rf "$work"' EXIT
  {
    git init --quiet "$work"
    git -C "$work" fetch --quiet --depth 1 "$source" "$commit"
    git -C "$work" checkout --quiet --detach "$commit"
  } >&2
  # Taken away with the temporary folder where anything above fails: what has the name is whole.
  mv "$work" "$folder"
fi
echo "$folder"
