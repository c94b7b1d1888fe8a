#!/bin/bash
# Sourced by the scripts of this folder: where things lie, and what they all do with lists and caches.
# shellcheck disable=SC2034

BOARD=reference-x86_64
BOARD_DIR=board/$BOARD
OUT=build/image/$BOARD
CACHE=build/image/cache

# list FILE…: the words of list files, without their comments, one a line.
list() {
  sed 's/#.*//' "$@" | tr -s '[:space:]' '\n' | sed '/^$/d'
}

# key FILE…: a name for what is made from these files.
key() {
  cat "$@" | sha256sum | cut -c 1-16
}

# mib BYTES: as MiB with one decimal.
mib() {
  awk -v bytes="$1" 'BEGIN { printf "%.1f MiB", bytes / 1048576 }'
}

# step TEXT: what the build does now.
step() {
  printf '%4d s  %s\n' "$SECONDS" "$1"
}

# forget_others PREFIX KEEP: removes the cached trees of earlier lists.
forget_others() {
  local tree
  for tree in "$1"*; do
    [ "$tree" = "$2" ] || rm -rf "$tree"
  done
}

# quietly COMMAND…: shows what it says only where it fails.
quietly() {
  local said
  said=$("$@" 2>&1) || { echo "$said" >&2; return 1; }
}
