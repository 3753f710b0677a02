#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the golden cases of arm64's interpreters on any machine: Debian's
# packages run programs that know their own stacks (tests/programs/interpreted)
# in an arm64 guest, where otprofd samples them by eBPF and writes a capture.
#
#   make_interpreted.sh [LANGUAGE...]     python ruby php perl
#
# Needs otprofd for arm64 in $BUILD/arm64, which tests/guest/arm64.sh makes.
# Then tests/golden/run.py --accept CASE, and a look at what it wrote.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${BUILD:-$top/build}/arm64
export OTPROF_GUEST_ARCH=arm64
[ $# -gt 0 ] || set -- python ruby php perl

# Sourced files find each other by the name of the script that reads them.
make_root() {
	cd "$top/tests/guest"
	bash -c '
		set -eu
		. ./apt.sh
		prepare_apt bookworm
		unpack() { uris_of install python3.11-minimal libpython3.11-stdlib ruby3.1 php8.2-cli perl-base libgcc-s1 | unpack_into "$new"; }
		in_cache interpreted-arm64 "$(echo bookworm | key_of)" unpack
		echo "$there"' ./arm64_root.sh
}

guest=$(mktemp -d)
trap 'rm -rf "$guest"' EXIT
interpreters=$(make_root)
cp -a "$interpreters/." "$guest/"
cp -a "$build/guest/." "$guest/"
rm -rf "$guest"/usr/share/{doc,man,locale,info} "$guest"/usr/lib/python3*/test
mkdir -p "$guest/programs"
cp "$top"/tests/programs/interpreted/*.{py,rb,php,pl} "$guest/programs/"
"$top/tests/guest/boot.sh" -k 6.1 -i 2 -m 3072 -t "${OTPROF_GUEST_SECONDS:-1200}" -M virtio_rng -r "$guest" \
	-a "OTPROF_LANGUAGES=$(IFS=,; echo "$*")" "$here/make_interpreted_guest.sh" \
	"$build/otprofd" "$build/otprof-worker" "$build/otprof" | tee "$guest/log" | grep -v '^[A-Za-z0-9+/=]\{60,\}$'
for language; do
	sed -n "/^begin $language\$/,/^end $language\$/p" "$guest/log" | grep -v "^\(begin\|end\) " | base64 -d >"$guest/capture.gz"
	gzip -t "$guest/capture.gz"
	mv "$guest/capture.gz" "$here/arm64-$language.capture.gz"
done
