#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sources.sh DIRECTORY: copies what a source package holds, the tree without
# what was built in it.
set -eu
to=${1:?usage: sources.sh DIRECTORY}
cd "$(dirname "$0")/.."
mkdir -p "$to"
tar -c --owner=0 --group=0 --exclude=__pycache__ --exclude='*.o' --exclude='*.ko' --exclude='*.cmd' --exclude='*.mod*' \
	ARCHITECTURE.md Kbuild LICENSES Makefile README.md SECURITY.md bpf dkms.conf kmod packaging proto tests userspace |
	tar -x -C "$to" --no-same-owner
