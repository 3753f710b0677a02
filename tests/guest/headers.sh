#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the headers of a guest's kernel beside it and prints their directory,
# for `make -C`.  headers.sh 5.10|6.1|6.12|7.x; 77 and a reason where they
# cannot be had. As fetch.sh, it leaves the host's own apt alone.
set -eu
cache=${OTPROF_GUEST_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/build/guest}
kernel=${1:?usage: headers.sh KERNEL}
here=$(cd "$(dirname "$0")" && pwd)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
version=$(cat "$("$here/fetch.sh" "$kernel")/version")
there=$cache/headers-$version

cannot() {
	echo "headers.sh: $*" >&2
	exit 77
}

case $kernel in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
7.x) suite=sid ;;
*) cannot "unknown kernel $kernel" ;;
esac

mirror() {
	{
		sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
		sed -n 's/^deb[[:space:]]\(\[[^]]*\][[:space:]]*\)\?\([^[:space:]]*\).*/\2/p' \
			/etc/apt/sources.list /etc/apt/sources.list.d/*.list
	} 2>/dev/null | grep -m 1 '/debian/\{0,1\}$' || cannot "no Debian mirror in the system's apt sources"
}

private_apt() {
	tool=$1
	shift
	"$tool" -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" \
		-o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false -o APT::Architecture=amd64 \
		-o APT::Architectures=amd64 -o Debug::NoLocking=true -o APT::Sandbox::User=root "$@"
}

# The headers of one kernel, those that all flavours share, and its build tools.
packages() {
	echo "linux-headers-$version"
	private_apt apt-cache show "linux-headers-$version" 2>/dev/null | sed -n 's/^Depends: //p' | head -n 1 |
		tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep -E '^linux-(headers|kbuild)-' || true
}

fetch() {
	mkdir -p "$apt/none" "$apt/state/lists/partial" "$apt/cache/archives/partial" "$new/deb"
	: >"$apt/status"
	printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$(mirror)" "$suite" >"$apt/sources.list"
	private_apt apt-get update >"$new/log" 2>&1 || cannot "no package list of $suite"
	for package in $(packages); do
		(cd "$new/deb" && private_apt apt-get download "$package" >>"$new/log" 2>&1) ||
			cannot "$package cannot be downloaded: $(tail -n 1 "$new/log")"
	done
	for deb in "$new"/deb/*.deb; do
		dpkg-deb -x "$deb" "$new"
	done
	# The makefiles name each other as if they were installed.
	for makefile in "$new"/usr/src/*/Makefile; do
		sed -i "s#/usr/src/linux-headers#$there/usr/src/linux-headers#g" "$makefile"
	done
	rm -rf "$new/deb"
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
