#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cache of what the guest tests download, unpack and build, for the scripts
# that read this file. It is the directory OTPROF_GUEST_CACHE (build/guest),
# which any number of clones and runs may share at the same time.
#
# An entry is a directory NAME-KEY. The key is a hash of what it is made from:
# the scripts that make it, the hashes of the packages, and what they are told.
# It is made beside its place, by one process at a time, and then renamed; so
# whoever finds it finds it whole. Entries of a name that nobody used for 30
# days are removed when another one is made.
#   debs/             packages as they were downloaded, by file name
#   apt-SUITE-ARCH/   lists of packages, a day old at most
# shellcheck disable=SC2034 # $there is the caller's
cache=${OTPROF_GUEST_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/build/guest}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# A key of stdin and FILEs.
key_of() { # FILE...
	cat - "$@" | sha256sum | cut -c 1-12
}

# Sets $there to the entry NAME-KEY. Where it is not there yet, COMMAND fills the directory $new for it: in a
# shell of its own, so that what it sets is forgotten.
in_cache() { # NAME KEY COMMAND...
	there=$cache/$1-$2
	[ -e "$there" ] || make_entry "$@"
	touch -c "$there"
}

make_entry() (
	name=$1
	shift 2
	exec 8>"$there.lock"
	flock 8
	if [ ! -e "$there" ]; then
		new=$there.new
		rm -rf "$new"
		mkdir "$new"
		trap 'rm -rf "$new"' EXIT
		"$@"
		touch "$new" # packages bring a time of their own
		mv -T "$new" "$there"
		forget_old "$name"
	fi
)

forget_old() { # NAME
	hex='[0-9a-f][0-9a-f][0-9a-f]'
	find "$cache" -maxdepth 1 \( -name "$1-$hex$hex$hex$hex" -o -name "$1-$hex$hex$hex$hex.lock" \) -mtime +30 \
		-exec rm -rf {} +
}
