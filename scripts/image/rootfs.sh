#!/bin/bash
# rootfs.sh TREE: makes the root file system of the reference image in the folder TREE: the packages' files that stay, our overlay, our executables, the
# initrd. VERSION, CHANNEL (development or release) and KEYS (the folder with ca.cert.pem) come by the environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/image/common.sh

tree=$1
server=dist/camera-server-x64
media=dist/camera-media
compatible=camera-server-$BOARD

base=$(scripts/image/base.sh)
step "packages: $(basename "$base")"
pruned=$(scripts/image/prune.sh "$base" "$server" "$media")
step "what stays of them: $(basename "$pruned")"
rm -rf "$tree"
cp -a "$pruned" "$tree"

# in_tree COMMAND…: with the tree's own programs, and a /proc that goes with them.
in_tree() {
  # shellcheck disable=SC2016 # for the inner shell
  unshare --mount --pid --fork sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 "$@"
}

# Ours. Modes as in Git, whatever the umask of the checkout was.
for overlay in overlay/common overlay/grub "$BOARD_DIR/overlay"; do
  tar -c -C "$overlay" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' . | tar -x -C "$tree" --keep-directory-symlink --no-overwrite-dir
done
install -m 755 "$server" "$tree/usr/bin/camera-server"
install -m 755 "$media" "$tree/usr/bin/camera-media"
sed -i "s/@COMPATIBLE@/$compatible/g" "$tree/etc/rauc/system.conf"
install -m 644 "$KEYS/ca.cert.pem" "$tree/etc/rauc/keyring.pem"
cat >"$tree/etc/camera-release" <<RELEASE
VERSION=$VERSION
BUILD=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
COMPATIBLE=$compatible
BOARD=$BOARD
CHANNEL=$CHANNEL
RELEASE
if grep -rIlE '@[A-Z_]+@' "$tree/etc/rauc" "$tree/usr/lib/camera"; then
  echo "placeholders are left in these files" >&2
  exit 1
fi

# GStreamer's list of plugins, made once here instead of at every start; each plugin has to load.
in_tree GST_REGISTRY=/usr/lib/gstreamer.registry gst-inspect-1.0 >/dev/null
chmod 644 "$tree/usr/lib/gstreamer.registry"
blacklist=$(in_tree GST_REGISTRY=/usr/lib/gstreamer.registry GST_REGISTRY_UPDATE=no gst-inspect-1.0 --print-blacklist)
grep -q 'Total count: 0 ' <<<"$blacklist" || { echo "$blacklist" >&2; exit 1; }
rm -f "$tree/usr/bin/gst-inspect-1.0"

# Users, units, device database, loader cache: / is read-only, so all of it happens here.
in_tree systemd-sysusers
in_tree systemctl preset-all --quiet
in_tree systemctl set-default --quiet multi-user.target
in_tree systemd-hwdb update --usr
in_tree ldconfig

# Nothing of the machine that built it; what is mounted over starts empty.
rm -rf "$tree"/etc/{passwd-,group-,shadow-,gshadow-,.pwd.lock} "${tree:?}"/{dev,proc,sys,run,tmp,var,data,media,mnt,srv,opt,home,root}
mkdir -p "$tree"/{dev,proc,sys,run,tmp,var,data,media,mnt,root,boot/state}
chmod 1777 "$tree/tmp"
chmod 700 "$tree/root"
: >"$tree/etc/machine-id"
ln -sfn ../run/systemd/resolve/stub-resolv.conf "$tree/etc/resolv.conf"
node --import tsx scripts/image/libraries.ts check "$tree"

scripts/image/licences.sh "$base" "$tree" "$(dirname "$tree")"
scripts/image/initrd.sh "$tree" "$tree/boot/initrd.img"
step "root file system: $(du -sm "$tree" | cut -f 1) MB in files"
