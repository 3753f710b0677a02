#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages of other suites, and of arm64 where OTPROF_GUEST_ARCH says so,
# for the scripts that read this file. A private apt root, $apt, has one source
# list made from the mirror that the system itself uses; the host's own apt
# configuration is not touched. $apt is the caller's. What cannot be had ends
# the script with 77 and a reason on stderr.
# shellcheck disable=SC2154
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
arch=${OTPROF_GUEST_ARCH:-amd64}

cannot() {
	echo "$(basename "$0"): $*" >&2
	exit 77
}

suite_of() {
	case ${1%-rt} in
	5.10) echo bullseye ;;
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	7.x) echo sid ;;
	*) cannot "unknown kernel $1: 5.10, 6.1, 6.12 or 7.x, or one of these with -rt" ;;
	esac
}

flavour_of() {
	case $1 in
	*-rt) echo rt ;;
	*) echo cloud ;;
	esac
}

# The first Debian mirror of the system's own sources, in either format.
mirror() {
	{
		sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
		sed -n 's/^deb[[:space:]]\(\[[^]]*\][[:space:]]*\)\?\([^[:space:]]*\).*/\2/p' \
			/etc/apt/sources.list /etc/apt/sources.list.d/*.list
		true # whichever of these files there is
	} 2>/dev/null | grep -m 1 '/debian/\{0,1\}$' || cannot "no Debian mirror in the system's apt sources"
}

private_apt() {
	tool=$1
	shift
	"$tool" -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" \
		-o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false -o APT::Architecture="$arch" \
		-o APT::Architectures="$arch" -o Debug::NoLocking=true -o APT::Sandbox::User=root "$@"
}

prepare_apt() {
	mkdir -p "$apt/none" "$apt/state/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$(mirror)" "$1" >"$apt/sources.list"
	private_apt apt-get update >"$apt/update.log" 2>&1 ||
		cannot "no package list of $1: $(grep -m 1 -E '^(E|Err):' "$apt/update.log" || tail -n 1 "$apt/update.log")"
}

# unpack_packages DIRECTORY PACKAGE...
unpack_packages() {
	into=$1
	shift
	mkdir -p "$into" "$apt/deb"
	for package in "$@"; do
		(cd "$apt/deb" && private_apt apt-get download "$package" >>"$apt/update.log" 2>&1) ||
			cannot "$package cannot be downloaded: $(tail -n 1 "$apt/update.log")"
	done
	for deb in "$apt"/deb/*.deb; do
		dpkg-deb -x "$deb" "$into"
	done
	rm -rf "$apt/deb"
}
