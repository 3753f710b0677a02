#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of the kernel's checkpatch.pl, with its lists of words and
# structures beside it: a source tree's that is there, or the one of Debian's
# linux-source package, of which nothing else is kept (a fetch of 140 MB, once).
# 77 and a reason where it cannot be had.
set -eu
cache=${OTPROF_GUEST_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/build/guest}
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
release=6.1 suite=bookworm
there=$cache/checkpatch-$release

fetch() {
	prepare_apt "$suite"
	unpack_packages "$new/deb" "linux-source-$release"
	mkdir "$new/scripts"
	tar -C "$new/scripts" --strip-components=2 -xf "$new/deb/usr/src/linux-source-$release.tar.xz" \
		"linux-source-$release/scripts/checkpatch.pl" "linux-source-$release/scripts/spelling.txt" \
		"linux-source-$release/scripts/const_structs.checkpatch"
}

for tree in "${KERNEL_SOURCE:-}" "$cache/linux-source-$release" "/usr/src/linux-source-$release"; do
	[ ! -e "$tree/scripts/checkpatch.pl" ] || { echo "$tree/scripts/checkpatch.pl"; exit; }
done
if [ ! -e "$there/checkpatch.pl" ]; then
	new=$there.new.$$
	# shellcheck disable=SC2034 # read by prepare_apt
	apt=$new/apt
	trap 'rm -rf "$new"' EXIT
	mkdir -p "$new"
	fetch
	mv "$new/scripts" "$there"
fi
echo "$there/checkpatch.pl"
