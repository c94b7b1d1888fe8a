# Sourced by post-build.sh and post-image.sh: what is built, and with which keys.
# shellcheck shell=bash disable=SC2034

# board BOARD: reads board.env; sets the compatible name.
board() {
  BOARD=$1
  BOARD_DIR=$COMMON/../$BOARD
  # shellcheck source=/dev/null
  . "$BOARD_DIR/board.env"
  COMPATIBLE=camera-server-$BOARD
}

# keys: CAMERA_KEYS is the folder of ca.cert.pem, signing.cert.pem and signing.key.pem, made by scripts/image/keys.sh; the key itself may be anything
# that RAUC takes (CAMERA_SIGNING_KEY, a PKCS#11 URI for example).
# A release refuses development keys: whoever has the repository could make them.
keys() {
  local folder=${CAMERA_KEYS:-$COMMON/../../build/keys} file subject
  CHANNEL=${CAMERA_CHANNEL:-development}
  CA=$folder/ca.cert.pem CERTIFICATE=$folder/signing.cert.pem KEY=${CAMERA_SIGNING_KEY:-$folder/signing.key.pem}
  case $CHANNEL in
    development | release) ;;
    *) fail "no channel: $CHANNEL (development, release)" ;;
  esac
  for file in "$CA" "$CERTIFICATE"; do
    [ -f "$file" ] || fail "no $file: make keys"
    subject=$(openssl x509 -in "$file" -noout -subject) || fail "no certificate: $file"
    if [ "$CHANNEL" = release ] && [[ ${subject,,} == *development* ]]; then
      fail "a release image is not built with a development key: $file ($subject)"
    fi
  done
  case $KEY in
    pkcs11:*) ;;
    *) [ -f "$KEY" ] || fail "no signing key: $KEY" ;;
  esac
}

version() {
  VERSION=${CAMERA_VERSION:-$(sed -n 's/^  "version": "\([^"]*\)".*/\1/p' "$COMMON/../../package.json")}
  [[ $VERSION =~ ^[0-9A-Za-z.+~-]{1,64}$ ]] || fail "not a version: $VERSION"
}

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}
