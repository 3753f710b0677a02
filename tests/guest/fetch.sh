#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches a Debian kernel for the guest tests and prints the directory that
# holds it: vmlinuz, version (its `uname -r`) and root/ (its modules).
#
#   fetch.sh 5.10|6.1|6.12|7.x      of OTPROF_GUEST_ARCH: amd64 (the default) or arm64
#   fetch.sh 6.1-rt                 the flavour for real time, likewise for the others
#   fetch.sh kasan|kcsan            what debug_kernel.sh has built before
#   fetch.sh /DIRECTORY             any other, which holds the same three
#
# Exit code 77 and a reason on stderr where it cannot be had.
set -eu
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"

# Kernel packages that a package needs, itself included: newer releases split the image.
packages() {
	depends=$(private_apt apt-cache show "$1" 2>/dev/null | sed -n 's/^Depends: //p' | head -n 1 |
		tr ',|' '\n\n' | sed 's/^ *//; s/ .*//' | grep -E '^linux-(image|binary|modules)-' || true)
	echo "$1"
	for depend in $depends; do
		packages "$depend"
	done
}

uris() {
	# shellcheck disable=SC2046 # names without blanks
	uris_of download $(packages "linux-image-$(flavour_of "$kernel")-$arch" | sort -u)
}

unpack() {
	echo "$uris" | unpack_into "$new/root"
	image=$(find "$new/root" -name 'vmlinuz*' -type f | head -n 1)
	[ -n "$image" ] || cannot "no vmlinuz in the packages of $kernel"
	basename "$(find "$new/root" -path '*/lib/modules/*' -prune -type d | head -n 1)" >"$new/version"
	mv "$image" "$new/vmlinuz"
}

kernel=${1:?usage: fetch.sh KERNEL}
case $kernel in
kasan | kcsan) made=$("$(dirname "$0")/debug_kernel.sh" -n "$kernel") ;;
/*) made=$kernel ;;
*) made= ;;
esac
if [ -n "$made" ]; then
	[ -e "$made/vmlinuz" ] || cannot "no $made/vmlinuz; kasan and kcsan are made by tests/guest/debug_kernel.sh"
	echo "$made"
	exit
fi
suite=$(suite_of "$kernel")
prepare_apt "$suite"
uris=$(about_packages "$kernel" uris)
# shellcheck disable=SC2086 # a list of files
in_cache "kernel-$kernel-$arch" "$(echo "$uris" | key_of $makers)" unpack
echo "$there"
