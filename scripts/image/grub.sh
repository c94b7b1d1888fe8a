#!/bin/bash
# grub.sh FOLDER: GRUB for UEFI with its configuration, and the two copies of its variables as they are on a new disk: slot A, slot B still empty.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

folder=$1
mkdir -p "$folder"
mapfile -t modules < <(list board/common/grub/modules.txt)
grub-mkimage --format x86_64-efi --output "$folder/BOOTX64.EFI" --prefix /grub --config board/common/grub/early.cfg "${modules[@]}"
cp board/common/grub/grub.cfg "$folder/grub.cfg"
rm -f "$folder/grubenv"
grub-editenv "$folder/grubenv" create
grub-editenv "$folder/grubenv" set 'ORDER=A B' A_OK=1 A_TRY=0 B_OK=0 B_TRY=0
cp "$folder/grubenv" "$folder/reserve"
