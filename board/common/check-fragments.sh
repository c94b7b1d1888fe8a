#!/bin/bash
# check-fragments.sh CONFIG FRAGMENT…: says what a configuration has lost of its fragments: Kconfig drops in silence what depends on something that is
# not there. Exit status 1 where anything is.
set -euo pipefail

config=$1
shift
lost=0
while read -r line; do
  case $line in
    CONFIG_*=n) grep -q "^${line%=n}=" "$config" || continue ;;
    CONFIG_*) ! grep -qxF "$line" "$config" || continue ;;
    '# CONFIG_'*' is not set')
      symbol=${line#\# }
      grep -q "^${symbol% is not set}=" "$config" || continue
      ;;
    *) continue ;;
  esac
  echo "lost in $config: $line" >&2
  lost=1
done < <(cat "$@")
exit "$lost"
