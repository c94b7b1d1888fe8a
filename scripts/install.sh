#!/bin/bash
# Installs what is missing on a Debian machine: `install.sh build` for `make run`, `install.sh test` for `make test` as well, `install.sh bench`
# for what the benches compare with, `install.sh image` for the executables and the reference image of the firmware, `install.sh buildroot` for
# `make image`, `install.sh check-image` for `make check-image`.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(
  gcc libc6-dev make meson ninja-build pkg-config
  libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev libgstrtspserver-1.0-dev libjson-glib-dev libturbojpeg0-dev glib-networking
  gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav gstreamer1.0-alsa
)
test_packages=(
  chromium clang-format curl ffmpeg shellcheck gstreamer1.0-tools procps iproute2 rauc openssl
  busybox e2fsprogs grub-common nftables openssh-client systemd util-linux
)
bench_packages=(nginx-light)
image_packages=(
  binutils-x86-64-linux-gnu binutils-aarch64-linux-gnu qemu-user-static
  mmdebstrap debian-archive-keyring squashfs-tools genimage dosfstools mtools e2fsprogs cpio xz-utils grub-common grub-efi-amd64-bin rauc openssl
  qemu-system-x86 qemu-utils ovmf
)

# What Buildroot asks for before it builds anything.
buildroot_packages=(
  bc bzip2 ca-certificates cpio diffutils file findutils g++ gzip libncurses-dev openssl patch perl python3 rsync tar unzip wget xz-utils
)
# Little enough for `make test`.
check_packages=(
  shellcheck busybox-static u-boot-tools grub-common genimage dosfstools mtools e2fsprogs squashfs-tools rauc openssl nftables cpio binutils xz-utils
  python3 python3-magic flake8 file
)

packages=("${build_packages[@]}")
case "${1:-build}" in
  build) ;;
  test) packages+=("${test_packages[@]}") ;;
  bench) packages+=("${test_packages[@]}" "${bench_packages[@]}") ;;
  image) packages+=("${image_packages[@]}") ;;
  buildroot) packages+=("${buildroot_packages[@]}") ;;
  check-image) packages+=("${check_packages[@]}") ;;
  *) echo "usage: $0 build|test|bench|image|buildroot|check-image" >&2; exit 2 ;;
esac

node_major=$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/' || true)
if [ "${node_major:-0}" -lt 20 ]; then
  echo "Node 20 or newer is needed (found: $(node --version 2>/dev/null || echo none))" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "Installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# npm leaves this file behind a complete install; it is older than the lock file after a change of that.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  echo "Installing Node packages"
  # Not `npm ci`: that refuses the lock file where a registry lacks the packages of foreign platforms. The versions are the lock file's all the same.
  npm install --no-save --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
