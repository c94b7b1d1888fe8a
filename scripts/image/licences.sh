#!/bin/bash
# licences.sh BASE TREE FOLDER: which Debian packages have files in the image (FOLDER/packages.tsv: name, version, source package) and under which terms
# (FOLDER/copyright.tar.xz). BASE still has the package database and the copyright files, TREE is what ships.
set -euo pipefail

base=$1 tree=$2 folder=$3
names=$(awk '
  NR == FNR { ships[$0]; next }
  {
    path = $0
    if (path ~ /^\/(bin|sbin|lib|lib64)\//) path = "/usr" path
    if (path in ships) package[FILENAME]
  }
  END { for (file in package) { sub(/.*\//, "", file); sub(/(:[a-z0-9]+)?\.list$/, "", file); print file } }
' <(find "$tree" -type f -printf '/%P\n') "$base"/var/lib/dpkg/info/*.list | sort)

# shellcheck disable=SC2016,SC2086 # the variables are dpkg's; one word is one package
dpkg-query --admindir="$base/var/lib/dpkg" --show --showformat='${Package}\t${Version}\t${source:Package}\n' $names >"$folder/packages.tsv.new"
mv -f "$folder/packages.tsv.new" "$folder/packages.tsv"
while read -r name; do
  # Some are links to the folder of another package.
  [ ! -f "$base/usr/share/doc/$name/copyright" ] || echo "$name/copyright"
done <<<"$names" | tar --create --xz --dereference --directory "$base/usr/share/doc" --files-from - --owner=0 --group=0 --file "$folder/copyright.tar.xz.new"
mv -f "$folder/copyright.tar.xz.new" "$folder/copyright.tar.xz"
