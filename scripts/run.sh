#!/bin/bash
# Starts the built server and says where it is. Options go to the server: `make run ARGS="--http-port 9000"`.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=true
[ -e data/db ] && fresh=false
mkdir -p data

coproc SERVER { exec ./dist/camera-server "$@" 2>>data/server.log; }
server=$SERVER_PID
trap 'kill -TERM "$server" 2>/dev/null || true' INT TERM
if ! read -r ready <&"${SERVER[0]}"; then
  tail -n 1 data/server.log >&2
  wait "$server"
fi

port() { sed -E "s/.*\"$1\":([0-9]+).*/\1/" <<<"$ready"; }
host=$(hostname -I 2>/dev/null | awk '{print $1}')
host=${host:-localhost}
echo
echo "The camera server is running."
echo "  Console          http://$host:$(port http)/"
echo "  Console (TLS)    https://$host:$(port https)/"
echo "  API document     http://$host:$(port http)/api/docs"
echo "  Dashboard        http://$host:$(port dashboard)/monitoring"
echo "  RTSP             rtsp://$host:$(port rtsp)/stream1 and /stream2"
if $fresh; then
  echo "  First login      admin / admin (it asks for a new password, which RTSP and the API then take as well)"
else
  echo "  Login            the accounts of the data folder"
fi
echo "  Log              data/server.log"
echo "Ctrl-C stops it."
status=0
# A trapped signal ends the first wait early; the second one gets the server's own status.
wait "$server" || wait "$server" || status=$?
exit "$status"
