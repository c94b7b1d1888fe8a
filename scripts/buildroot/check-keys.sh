#!/bin/bash
# check-keys.sh: fails where CAMERA_KEYS are not there or not for CAMERA_CHANNEL; the same check as the image build makes.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2034 # read by release.sh
COMMON=$PWD/board/common
# shellcheck source=/dev/null
. board/common/release.sh
keys
version
