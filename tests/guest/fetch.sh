#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches a Debian kernel for the guest tests and prints the directory that
# holds it: vmlinuz, version (its `uname -r`) and root/ (its modules).
#
#   fetch.sh 5.10|6.1|6.12|7.x
#
# The host's own apt configuration stays untouched: a private apt root below
# the cache reads one extra source list, made from the mirror that the system
# itself uses. Exit code 77 and a reason on stderr where it cannot be had.
set -eu

cache=${OTPROF_GUEST_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/build/guest}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

cannot() {
	echo "fetch.sh: $*" >&2
	exit 77
}

suite_of() {
	case $1 in
	5.10) echo bullseye ;;
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	7.x) echo sid ;;
	*) cannot "unknown kernel $1: 5.10, 6.1, 6.12 or 7.x" ;;
	esac
}

# The first Debian mirror of the system's own sources, in either format.
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

prepare_apt() {
	mkdir -p "$apt/none" "$apt/state/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$(mirror)" "$1" >"$apt/sources.list"
	private_apt apt-get update >"$apt/update.log" 2>&1 ||
		cannot "no package list of $1: $(grep -m 1 -E '^(E|Err):' "$apt/update.log" || tail -n 1 "$apt/update.log")"
}

# Kernel packages that a package needs, itself included: newer releases split the image.
packages() {
	depends=$(private_apt apt-cache show "$1" 2>/dev/null | sed -n 's/^Depends: //p' | head -n 1 |
		tr ',|' '\n\n' | sed 's/^ *//; s/ .*//' | grep -E '^linux-(image|binary|modules)-' || true)
	echo "$1"
	for depend in $depends; do
		packages "$depend"
	done
}

unpack() {
	mkdir -p "$new/root" "$new/deb"
	for package in $(packages linux-image-cloud-amd64 | sort -u); do
		(cd "$new/deb" && private_apt apt-get download "$package" >>"$apt/update.log" 2>&1) ||
			cannot "$package cannot be downloaded: $(tail -n 1 "$apt/update.log")"
	done
	for deb in "$new"/deb/*.deb; do
		dpkg-deb -x "$deb" "$new/root"
	done
	rm -rf "$new/deb"
	image=$(find "$new/root" -name 'vmlinuz*' -type f | head -n 1)
	[ -n "$image" ] || cannot "no vmlinuz in the packages of $1"
	basename "$(find "$new/root" -path '*/lib/modules/*' -prune -type d | head -n 1)" >"$new/version"
	mv "$image" "$new/vmlinuz"
}

kernel=${1:?usage: fetch.sh KERNEL}
suite=$(suite_of "$kernel")
there=$cache/kernel-$kernel
apt=$cache/apt-$suite
new=$there.new.$$
if [ ! -e "$there/vmlinuz" ]; then
	mkdir -p "$cache"
	trap 'rm -rf "$new"' EXIT
	prepare_apt "$suite"
	unpack "$suite"
	rm -rf "$there"
	mv "$new" "$there"
	rm -rf "$apt"
fi
echo "$there"
