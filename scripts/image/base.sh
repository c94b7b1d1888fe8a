#!/bin/bash
# base.sh: installs the reference image's Debian packages into a folder and prints its name. It is made once for a list of packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

SUITE=trixie
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

tree=$CACHE/base-$(key "$BOARD_DIR/packages.txt" scripts/image/base.sh)
if [ ! -d "$tree" ]; then
  # mirror LABEL: where this machine gets Debian's packages from; the suite is ours.
  mirror() {
    local found
    # shellcheck disable=SC2016 # these are apt's variables
    found=$(apt-get indextargets --format '$(LABEL)|$(SITE)' 'Created-By: Packages' | sed -n "s/^$1|//p" | sort -u | head -n 1)
    [ -n "$found" ] || { echo "no $1 mirror among this machine's package sources" >&2; exit 1; }
    echo "$found"
  }
  main=${IMAGE_MIRROR:-$(mirror Debian)}
  security=${IMAGE_SECURITY_MIRROR:-$(mirror Debian-Security)}

  mkdir -p "$CACHE"
  new=$tree.new
  rm -rf "$new"
  # INITRD=No: the kernel package would build an initrd, and we bring our own.
  INITRD=No mmdebstrap --mode=root --variant=minbase --architectures=amd64 --keyring="$KEYRING" --quiet \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='force-unsafe-io' \
    --include="$(list "$BOARD_DIR/packages.txt" | paste -sd,)" \
    "$SUITE" "$new" "deb $main $SUITE main" "deb $main $SUITE-updates main" "deb $security $SUITE-security main" >&2
  mv "$new" "$tree"
  forget_others "$CACHE/base-" "$tree"
fi
echo "$tree"
