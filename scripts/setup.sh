#!/usr/bin/env bash
# Installs what building, testing or checking needs and is missing; silent and instant when nothing is.
#   scripts/setup.sh [build] [test] [check] [clang] [llvm16]     default: build
# Debian has no nanobind: `test` makes .venv of the system's Python and installs python/requirements.txt there.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=(ccache cmake g++ libcli11-dev libfmt-dev libisl-dev libxxhash-dev llvm-19-dev ninja-build nlohmann-json3-dev)
test=(libgmock-dev libgtest-dev python3 python3-dev python3-numpy python3-venv)
check=(clang-format-19 clang-tidy-19 git)
clang=(clang-19 libclang-rt-19-dev)
llvm16=(llvm-16-dev)

wanted=()
[ $# -gt 0 ] || set -- build
for group in "$@"; do
  case $group in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    check) wanted+=("${check[@]}") ;;
    clang) wanted+=("${clang[@]}") ;;
    llvm16) wanted+=("${llvm16[@]}") ;;
    *) echo "setup: no group '$group'; the groups are build, test, check, clang and llvm16" >&2; exit 2 ;;
  esac
done

environment() {
  local wanted=python/requirements.txt have=.venv/requirements.txt python=/usr/bin/python3
  [[ " $* " == *" test "* ]] || return 0
  cmp -s "$wanted" "$have" && return 0
  echo "setup: .venv with the packages of $wanted"
  [ -x $python ] || python=python3
  [ -x .venv/bin/pip ] || $python -m venv --system-site-packages .venv
  .venv/bin/pip install -q --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$have"
}

if ! command -v dpkg-query > /dev/null; then
  for program in cmake ninja python3; do
    command -v "$program" > /dev/null && continue
    echo "setup: not a Debian system; install the like of: ${wanted[*]}" >&2
    exit 2
  done
  environment "$@"
  exit 0
fi

packages() {
  local missing=() package installed root
  installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "${wanted[@]}" 2> /dev/null || true) "
  for package in "${wanted[@]}"; do
    [[ $installed == *" $package:installed "* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  if [ "$(id -u)" -eq 0 ]; then
    root=()
  elif command -v sudo > /dev/null; then
    root=(sudo)
  else
    echo "setup: missing ${missing[*]}; run as root or with sudo installed" >&2
    exit 2
  fi
  echo "setup: installing ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)  # another installation may be under way
  "${root[@]}" "${apt[@]}" update
  "${root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" > /dev/null
}

packages
environment "$@"
