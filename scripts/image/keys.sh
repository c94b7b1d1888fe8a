#!/bin/bash
# keys.sh FOLDER: makes keys for signing update bundles in FOLDER, where there are none yet: an authority (ca.cert.pem goes into the images) and a signing
# certificate below it. They are for development: the subject says so, and a release build refuses them.
# With --release NAME the subject carries NAME instead: to be run where the authority's key is to be kept.
set -euo pipefail

if [ "${1:-}" = --release ]; then
  name=${2:?"usage: keys.sh [--release NAME] FOLDER"}
  shift 2
  authority="/O=$name/CN=$name updates" signer="/O=$name/CN=$name update signing" days=1096
else
  authority='/O=Camera server development/CN=development updates, not for releases'
  signer='/O=Camera server development/CN=development update signing, not for releases' days=7305
fi
folder=${1:?"usage: keys.sh [--release NAME] FOLDER"}
[ ! -e "$folder/signing.key.pem" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 077
cat >"$work/openssl.cnf" <<'CONFIG'
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[signer]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = emailProtection, codeSigning
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
CONFIG

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }
new_key "$work/ca.key.pem"
openssl req -new -x509 -key "$work/ca.key.pem" -subj "$authority" -days 7305 -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n'; cat "$work/openssl.cnf") \
  -extensions authority -out "$work/ca.cert.pem"
new_key "$work/signing.key.pem"
openssl req -new -key "$work/signing.key.pem" -subj "$signer" -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -out "$work/signing.csr"
openssl x509 -req -in "$work/signing.csr" -CA "$work/ca.cert.pem" -CAkey "$work/ca.key.pem" -set_serial "0x$(openssl rand -hex 16)" -days "$days" \
  -extfile "$work/openssl.cnf" -extensions signer -out "$work/signing.cert.pem" 2>/dev/null

mkdir -p "$folder"
cp "$work/ca.key.pem" "$work/ca.cert.pem" "$work/signing.cert.pem" "$folder/"
cp "$work/signing.key.pem" "$folder/signing.key.pem.new"
mv "$folder/signing.key.pem.new" "$folder/signing.key.pem"
echo "keys: $folder, $(openssl x509 -in "$folder/signing.cert.pem" -noout -subject)"
