#!/usr/bin/env bash
# Installs what building, testing or checking needs and is missing; silent and instant when nothing is.
#   scripts/setup.sh [build] [test] [check]     default: build
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

build=(ccache cmake g++ libcli11-dev libfmt-dev libisl-dev libxxhash-dev llvm-19-dev ninja-build nlohmann-json3-dev)
test=(libgmock-dev libgtest-dev python3 python3-numpy)
check=(clang-19 clang-format-19 clang-tidy-19 git)

wanted=()
[ $# -gt 0 ] || set -- build
for group in "$@"; do
  case $group in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    check) wanted+=("${check[@]}") ;;
    *) echo "setup: no group '$group'; the groups are build, test and check" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query > /dev/null; then
  for program in cmake ninja python3; do
    command -v "$program" > /dev/null && continue
    echo "setup: not a Debian system; install the like of: ${wanted[*]}" >&2
    exit 2
  done
  exit 0
fi

missing=()
installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "${wanted[@]}" 2> /dev/null || true) "
for package in "${wanted[@]}"; do
  [[ $installed == *" $package:installed "* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  root=()
elif command -v sudo > /dev/null; then
  root=(sudo)
else
  echo "setup: missing ${missing[*]}; run as root or with sudo installed" >&2
  exit 2
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
