#!/bin/bash
# modules.sh TREE KERNEL LIST: the module files of the names in LIST and of what they depend on, below `kernel/`, in an order in which they can be loaded.
# What the kernel has built in is left out; a name that it does not know is an error. Asks the tree's own modprobe.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

tree=$1 kernel=$2 names=$3
declare -A printed=()
while read -r name; do
  depends=$(chroot "$tree" modprobe -S "$kernel" --show-depends "$name") || { echo "no kernel module $name" >&2; exit 1; }
  while read -r verb file _; do
    [ "$verb" = insmod ] || continue
    file=${file##*"/$kernel/kernel/"}
    [ -z "${printed[$file]:-}" ] || continue
    printed[$file]=1
    echo "$file"
  done <<<"$depends"
done < <(list "$names")
