#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a tree of Debian's arm64 packages and prints its directory: what
# otprofd is linked with, for a cross compiler's --sysroot, and a busybox.
# One suite for all hosts. As fetch.sh, it leaves the host's own apt alone;
# nothing is installed, only unpacked. 77 and a reason where it cannot be had.
set -eu
export OTPROF_GUEST_ARCH=arm64
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
suite=bookworm
# The libraries that the program is built with have one list.
packages="libgcc-s1 busybox-static $(sed -n '/^BUILD_PACKAGES="/,/"$/p' "$(dirname "$0")/../setup.sh" |
	tr -s '"\t ' '\n' | grep -E '^(lib|zlib).*-dev$' | tr '\n' ' ')"

uris() {
	# shellcheck disable=SC2086
	uris_of install $packages
}

unpack() {
	echo "$uris" | unpack_into "$new"
	# Links from the root of a system lead out of this one.
	find "$new" -type l -lname '/*' | while read -r link; do
		ln -sfn "$(echo "$link" | sed "s#^$new/##; s#[^/]*##g; s#/#../#g")$(readlink "$link" | sed 's#^/##')" "$link"
	done
}

prepare_apt "$suite"
uris=$(about_packages "root-$(echo "$packages" | key_of)" uris)
# shellcheck disable=SC2086 # a list of files
in_cache root-arm64 "$(echo "$uris" | key_of $makers)" unpack
echo "$there"
