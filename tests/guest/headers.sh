#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the headers of a guest's kernel and prints their directory, for
# `make -C`.  headers.sh 5.10|6.1|6.12|7.x; 77 and a reason where they cannot
# be had. As fetch.sh, it leaves the host's own apt alone.
set -eu
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
kernel=${1:?usage: headers.sh KERNEL}
image=$("$(dirname "$0")/fetch.sh" "$kernel")
version=$(cat "$image/version")
suite=$(suite_of "$kernel")
cross=$([ "$arch" = amd64 ] || echo yes)

# The headers of one kernel, those that all flavours share, and its build tools.
packages() { # KIND: headers or kbuild
	private_apt apt-cache show "linux-headers-$version" 2>/dev/null | sed -n 's/^Depends: //p' | head -n 1 |
		tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep "^linux-$1-" || true
}

# The tools run here, whatever they build for: they are of this architecture.
uris() {
	tools=$(packages kbuild)
	# shellcheck disable=SC2046 # names without blanks
	uris_of download "linux-headers-$version" $(packages headers)
	[ -z "$cross" ] || use_amd64
	# shellcheck disable=SC2086
	uris_of download $tools
}

use_amd64() {
	arch=amd64
	prepare_apt "$suite"
}

# For a cross build: tools of a newer suite may want its C library, which they get to themselves.
with_their_libc() {
	find "$new"/usr/lib/linux-kbuild* -type f -perm -u+x | while read -r tool; do
		ldd "$tool" 2>&1 | grep -q 'GLIBC.*not found' || continue
		[ -d "$new/libc" ] || uris_of download libc6 | unpack_into "$new/libc"
		mv "$tool" "$tool.real"
		own=$there/libc/usr/lib/x86_64-linux-gnu
		printf '#!/bin/sh\nexec %s/ld-linux-x86-64.so.2 --library-path %s %s "$@"\n' "$own" "$own" \
			"$there${tool#"$new"}.real" >"$tool"
		chmod 755 "$tool"
	done
}

unpack() {
	echo "$uris" | unpack_into "$new"
	if [ -n "$cross" ]; then
		use_amd64
		with_their_libc
	fi
	# The makefiles name each other as if they were installed.
	for makefile in "$new"/usr/src/*/Makefile; do
		sed -i "s#/usr/src/linux-headers#$there/usr/src/linux-headers#g" "$makefile"
	done
}

prepare_apt "$suite"
uris=$(about_packages "headers-$version" uris)
# shellcheck disable=SC2086 # a list of files
in_cache "headers-$kernel-$arch" "$(echo "$uris" | key_of $makers)" unpack
echo "$there/usr/src/linux-headers-$version"
