#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of the kernel's checkpatch.pl, with its lists of words and
# structures beside it: a source tree's that is there, or the one of Debian's
# linux-source package, of which nothing else is unpacked (a fetch of 140 MB, once).
# 77 and a reason where it cannot be had.
set -eu
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
release=6.1 suite=bookworm

uris() {
	uris_of download "linux-source-$release"
}

unpack() {
	echo "$uris" | unpack_into "$new/deb"
	tar -C "$new" --strip-components=2 -xf "$new/deb/usr/src/linux-source-$release.tar.xz" \
		"linux-source-$release/scripts/checkpatch.pl" "linux-source-$release/scripts/spelling.txt" \
		"linux-source-$release/scripts/const_structs.checkpatch"
	rm -r "$new/deb"
}

for tree in "${KERNEL_SOURCE:-}" "/usr/src/linux-source-$release"; do
	[ ! -e "$tree/scripts/checkpatch.pl" ] || { echo "$tree/scripts/checkpatch.pl"; exit; }
done
prepare_apt "$suite"
uris=$(about_packages "source-$release" uris)
# shellcheck disable=SC2086 # a list of files
in_cache checkpatch "$(echo "$uris" | key_of $makers)" unpack
echo "$there/checkpatch.pl"
