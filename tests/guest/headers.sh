#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the headers of a guest's kernel beside it and prints their directory,
# for `make -C`.  headers.sh 5.10|6.1|6.12|7.x; 77 and a reason where they
# cannot be had. As fetch.sh, it leaves the host's own apt alone.
set -eu
cache=${OTPROF_GUEST_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/build/guest}
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
kernel=${1:?usage: headers.sh KERNEL}
here=$(cd "$(dirname "$0")" && pwd)
version=$(cat "$("$here/fetch.sh" "$kernel")/version")
suite=$(suite_of "$kernel")
there=$cache/headers-$version

# The headers of one kernel, those that all flavours share, and its build tools.
packages() { # KIND: headers or kbuild
	private_apt apt-cache show "linux-headers-$version" 2>/dev/null | sed -n 's/^Depends: //p' | head -n 1 |
		tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep "^linux-$1-" || true
}

# For a cross build: tools of a newer suite may want its C library, which they get to themselves.
with_their_libc() {
	find "$new"/usr/lib/linux-kbuild* -type f -perm -u+x | while read -r tool; do
		ldd "$tool" 2>&1 | grep -q 'GLIBC.*not found' || continue
		[ -d "$new/libc" ] || unpack_packages "$new/libc" libc6
		mv "$tool" "$tool.real"
		own=$there/libc/usr/lib/x86_64-linux-gnu
		printf '#!/bin/sh\nexec %s/ld-linux-x86-64.so.2 --library-path %s %s "$@"\n' "$own" "$own" \
			"$there${tool#"$new"}.real" >"$tool"
		chmod 755 "$tool"
	done
}

# The tools run here, whatever they build for: they are of this architecture.
fetch() {
	prepare_apt "$suite"
	tools=$(packages kbuild)
	# shellcheck disable=SC2046 # names without blanks
	unpack_packages "$new" "linux-headers-$version" $(packages headers)
	if [ "$arch" != amd64 ]; then
		arch=amd64
		rm -rf "$apt"
		prepare_apt "$suite"
	fi
	# shellcheck disable=SC2086
	unpack_packages "$new" $tools
	[ "${OTPROF_GUEST_ARCH:-amd64}" = amd64 ] || with_their_libc
	# The makefiles name each other as if they were installed.
	for makefile in "$new"/usr/src/*/Makefile; do
		sed -i "s#/usr/src/linux-headers#$there/usr/src/linux-headers#g" "$makefile"
	done
}

if [ ! -d "$there" ]; then
	new=$there.new.$$
	apt=$new/apt
	trap 'rm -rf "$new"' EXIT
	mkdir -p "$new"
	fetch
	rm -rf "$apt"
	mv "$new" "$there"
fi
echo "$there/usr/src/linux-headers-$version"
