#!/bin/bash
# check.sh: everything of the firmware that can be checked without building it. No network. With BUILDROOT_DIR also the configurations against that tree.
# Each check says one line; exit status 1 where one fails.
# shellcheck disable=SC2317 # the functions are called through `check`
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check NAME COMMAND…: what it prints is shown where it fails.
check() {
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "ok   $name"
  else
    failed=1
    echo "FAIL $name"
    sed 's/^/     /' "$work/log"
  fi
}

scripts_of() { grep -rlIE '^#!/bin/(ba|da)?sh' board buildroot-external overlay scripts 2>/dev/null; }
shell_scripts() { scripts_of | xargs shellcheck --external-sources --source-path=SCRIPTDIR:. ; }
target_scripts() {
  local script
  while read -r script; do
    busybox ash -n "$script" || return 1
  done < <(grep -rlIE '^#!/bin/sh' overlay)
}

boot_script() { # BOARD
  cat "board/$1/settings.cmd" board/common/uboot/boot.cmd >"$work/boot.cmd"
  mkimage -A arm64 -T script -C none -d "$work/boot.cmd" "$work/boot.scr"
}

# The units with the executables that they start and the machine's own units beside them, so that nothing is missing but what is wrong.
units() {
  local root=$work/units flavour=$1 unit program
  rm -rf "$root"
  mkdir -p "$root/usr/lib/systemd" "$root/bin"
  cp -r /usr/lib/systemd/system "$root/usr/lib/systemd/system"
  cp -r overlay/common/. "overlay/$flavour/." "$root/"
  while read -r program; do
    case $program in /*) program=$root$program ;; *) program=$root/usr/bin/$program ;; esac
    [ -e "$program" ] || install -D -m 755 /dev/stdin "$program" <<<'#!/bin/sh'
  done < <(sed -nE 's/^Exec[A-Za-z]+=[-+!@:]*([^ ]+).*/\1/p' overlay/common/usr/lib/systemd/system/*.service "overlay/$flavour"/usr/lib/systemd/system/*.service 2>/dev/null | sort -u)
  local list=()
  for unit in overlay/common/usr/lib/systemd/system/* "overlay/$flavour"/usr/lib/systemd/system/*; do
    case $unit in *@.service) unit=${unit%@.service}@x.service ;; esac
    case $unit in *.d) continue ;; esac
    list+=("${unit##*/}")
  done
  systemd-analyze verify --root="$root" --man=no --recursive-errors=one "${list[@]}" 2>&1 |
    grep -vE '^$|is not executable|Unit configured to use KillMode=none' >"$work/units.log"
  ! grep -E 'camera|data|boot-state' "$work/units.log"
}

exposure() {
  systemd-analyze security --offline=true --threshold=30 overlay/common/usr/lib/systemd/system/camera-server.service
}

firewall() {
  unshare --net nft --check --file overlay/common/etc/camera/nftables.conf
}

python() { flake8 --max-line-length 160 scripts/buildroot; }

loads() { # DEFCONFIG
  local out=$work/out
  rm -rf "$out"
  mkdir -p "$out"
  make --silent -C "$BUILDROOT_DIR" BR2_EXTERNAL="$PWD/buildroot-external" O="$out" "$1" || return 1
  if grep -q 'unmet direct dependencies' "$work/log"; then return 1; fi
  python3 scripts/buildroot/check_config.py loaded "$out/.config" "buildroot-external/configs/$1" || return 1
  make --silent -C "$BUILDROOT_DIR" BR2_EXTERNAL="$PWD/buildroot-external" O="$out" show-info >"$work/info.json" || return 1
  python3 scripts/buildroot/check_config.py hashes "$work/info.json" "$BUILDROOT_DIR" || return 1
  python3 scripts/buildroot/sbom.py "$work/info.json" package-lock.json check 1 24 >"$work/sbom.json" || return 1
  python3 scripts/buildroot/licences.py "$work/sbom.json" >"$work/licences.csv"
}

applets() {
  grep -rlIE '^#!/bin/(busybox )?sh|^# shellcheck shell=(da)?sh' overlay board |
    xargs python3 scripts/buildroot/check_config.py applets "$BUILDROOT_DIR/package/busybox/busybox.config" board/common/busybox.fragment
}

package_style() {
  # The system's own python: it has the modules of Debian's packages.
  find buildroot-external -type f -not -path '*/configs/*' -print0 | xargs -0 /usr/bin/python3 "$BUILDROOT_DIR/utils/check-package" --br2-external
}

check 'shell scripts: shellcheck' shell_scripts
check 'scripts of the target: busybox ash reads them' target_scripts
check 'python scripts: flake8' python
for board in board/*/settings.cmd; do
  board=$(basename "$(dirname "$board")")
  check "boot script of $board: mkimage" boot_script "$board"
done
check 'grub.cfg: grub-script-check' grub-script-check board/common/grub/grub.cfg
check 'early.cfg: grub-script-check' grub-script-check board/common/grub/early.cfg
check 'units with GRUB: systemd-analyze verify' units grub
check 'units with U-Boot: systemd-analyze verify' units uboot
check 'camera-server.service: exposure below 3' exposure
check 'firewall: nft' firewall
check 'the common block of the configurations' python3 scripts/buildroot/check_config.py common buildroot-external/configs/*_defconfig
check "GRUB's modules" python3 scripts/buildroot/check_config.py grub buildroot-external/configs/camera_qemu_x86_64_defconfig board/common/grub/modules.txt

if [ -n "${BUILDROOT_DIR:-}" ]; then
  unset MAKEFLAGS MFLAGS MAKELEVEL
  for file in buildroot-external/configs/*_defconfig; do
    check "$(basename "$file") loads whole, every download has a hash" loads "$(basename "$file")"
  done
  check 'our packages: check-package' package_style
  check 'what the scripts call is in busybox' applets
else
  echo 'left out: the configurations against Buildroot itself (BUILDROOT_DIR is not set)'
fi
exit "$failed"
