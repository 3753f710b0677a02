#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a tree of Debian's arm64 packages and prints its directory: what
# otprofd is linked with, for a cross compiler's --sysroot, and a busybox.
# One suite for all hosts. As fetch.sh, it leaves the host's own apt alone;
# nothing is installed, only unpacked. 77 and a reason where it cannot be had.
set -eu
export OTPROF_GUEST_ARCH=arm64
cache=${OTPROF_GUEST_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/build/guest}
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
suite=bookworm
# The libraries that the program is built with have one list.
packages="libgcc-s1 busybox-static $(sed -n '/^BUILD_PACKAGES="/,/"$/p' "$(dirname "$0")/../setup.sh" |
	tr -s '"\t ' '\n' | grep -E '^(lib|zlib).*-dev$' | tr '\n' ' ')"

fetch() {
	prepare_apt "$suite"
	# shellcheck disable=SC2086
	private_apt apt-get install -y --download-only --no-install-recommends $packages >>"$apt/update.log" 2>&1 ||
		cannot "arm64 libraries cannot be downloaded: $(tail -n 1 "$apt/update.log")"
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb -x "$deb" "$new"
	done
	# Links from the root of a system lead out of this one.
	find "$new" -type l -lname '/*' | while read -r link; do
		ln -sfn "$(echo "$link" | sed "s#^$new/##; s#[^/]*##g; s#/#../#g")$(readlink "$link" | sed 's#^/##')" "$link"
	done
}

# What changes this script or that list, changes the tree.
there=$cache/root-arm64-$( (cat "$0" && echo "$packages") | sha256sum | cut -c 1-12)
if [ ! -d "$there" ]; then
	new=$there.new.$$
	apt=$new.apt
	trap 'rm -rf "$new" "$apt"' EXIT
	mkdir -p "$new" "$apt"
	fetch
	mv "$new" "$there"
fi
echo "$there"
