#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dkms_source.sh VERSION DIRECTORY: the module's source as DKMS wants it, with
# the version in the two places that say it.
set -eu
version=$1 to=$2
cd "$(dirname "$0")/.."
mkdir -p "$to"
cp -r Kbuild kmod "$to/"
find "$to" -name __pycache__ -prune -exec rm -r {} +
sed -i "s/-DOTPROF_VERSION=[^ ]*/-DOTPROF_VERSION=\\\\\"$version\\\\\"/" "$to/Kbuild"
sed "s/^\\(PACKAGE_VERSION\\)=.*/\\1=\"$version\"/" dkms.conf >"$to/dkms.conf"
