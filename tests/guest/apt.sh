#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages of other suites, and of arm64 where OTPROF_GUEST_ARCH says so,
# for the scripts that read this file. A private apt root in the cache has one
# source list made from the mirror that the system itself uses; the host's own
# apt configuration is not touched. Packages are downloaded once and kept. What
# cannot be had ends the script with 77 and a reason on stderr.
# shellcheck disable=SC2154
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
arch=${OTPROF_GUEST_ARCH:-amd64}
# shellcheck source=tests/guest/cache.sh
. "$(dirname "$0")/cache.sh"
debs=$cache/debs
# What an entry of the cache is made by: the script itself, and these.
makers="$0 $(dirname "$0")/apt.sh $(dirname "$0")/cache.sh"

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

# Sets $apt to the private root of a suite, with lists that are not older than a day; older ones do where the
# mirror does not answer.
prepare_apt() { # SUITE
	apt=$cache/apt-$1-$arch
	mkdir -p "$apt/none" "$apt/state/lists/partial" "$apt/cache/archives/partial"
	source="deb [signed-by=$keyring] $(mirror) $1 main"
	exec 7>"$apt/lock"
	flock 7
	if [ "$(cat "$apt/sources.list" 2>/dev/null)" != "$source" ] || [ -z "$(find "$apt/stamp" -mmin -1440 2>/dev/null)" ]; then
		update_lists "$1"
	fi
	exec 7>&-
}

update_lists() { # SUITE
	[ "$(cat "$apt/sources.list" 2>/dev/null)" = "$source" ] || rm -f "$apt/stamp"
	: >"$apt/status"
	echo "$source" >"$apt/sources.list"
	if private_apt apt-get update >"$apt/update.log" 2>&1; then
		touch "$apt/stamp"
	else
		[ -e "$apt/stamp" ] ||
			cannot "no package list of $1: $(grep -m 1 -E '^(E|Err):' "$apt/update.log" || tail -n 1 "$apt/update.log")"
		echo "$(basename "$0"): no new package list of $1, the old one is used" >&2
	fi
}

# What COMMAND prints about packages, asked once for each state of the lists and of these scripts.
about_packages() { # NAME COMMAND...
	answer=$apt/about-$1
	shift
	# shellcheck disable=SC2086 # a list of files
	if [ ! -e "$answer" ] || [ -n "$(find "$apt/stamp" $makers -newer "$answer")" ]; then
		"$@" >"$answer.$$"
		mv "$answer.$$" "$answer"
	fi
	[ -s "$answer" ] || cannot "nothing is known of packages for $(basename "$answer")"
	cat "$answer"
}

# Lines "URI FILE HASH" of the packages, or of those that an empty system needs to install them.
uris_of() { # download|install PACKAGE...
	how=$1
	shift
	private_apt apt-get -y --no-install-recommends --print-uris -o Dir::Cache::archives="$apt/none" "$how" "$@" \
		2>"$apt/uris.log" | sed -n "s/^'\([^']*\)' \([^ ]*\) [0-9]* \(.*\)/\1 \2 \3/p"
	! grep '^E: ' "$apt/uris.log" >"$apt/uris.bad" || cannot "$* cannot be downloaded: $(head -n 1 "$apt/uris.bad")"
}

is_whole() { # FILE HASH, as SHA256:...
	[ -e "$1" ] && [ "SHA256:$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$2" ]
}

# Reads lines of uris_of; prints the files, which are in the cache then.
download() {
	mkdir -p "$debs"
	while read -r uri name hash; do
		if ! is_whole "$debs/$name" "$hash"; then
			/usr/lib/apt/apt-helper download-file "$uri" "$debs/$name.$$" "$hash" >"$apt/update.log" 2>&1 ||
				cannot "$name cannot be downloaded: $(tail -n 1 "$apt/update.log")"
			mv "$debs/$name.$$" "$debs/$name"
		fi
		touch "$debs/$name"
		echo "$debs/$name"
	done
}

# Reads lines of uris_of.
unpack_into() { # DIRECTORY
	mkdir -p "$1"
	download >"$apt/files.$$"
	while read -r deb; do
		dpkg-deb -x "$deb" "$1"
	done <"$apt/files.$$"
	rm "$apt/files.$$"
}
