#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the module for a guest's kernel, W=1, and fails on a warning about our
# own files.  module.sh KERNEL DIRECTORY [FLAGS]   leaves DIRECTORY/otprof.ko;
# the compiler gets FLAGS, where it is the host's. A module that was made from
# the same sources, headers and flags is kept.
#
# The compiler is the host's where it can do what the kernel's own could, and
# the kernel's build tools run here. Where not, it is the one of the kernel's
# Debian suite: unpacked beside its headers and run in a chroot, as root.
# 77 and a reason where headers or compiler cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
# shellcheck source=tests/guest/apt.sh
. "$here/apt.sh"
kernel=${1:?usage: module.sh KERNEL DIRECTORY}
mkdir -p "${2:?usage: module.sh KERNEL DIRECTORY}"
dir=$(cd "$2" && pwd)

# A kernel that was built here brings its tree; the others have headers. Old
# ones do not know what today's compilers do where nobody asks them.
flags=${3:-}
case $kernel in
kasan | kcsan | /*)
	flags="$flags -fno-pie -fcf-protection=none"
	image=$("$here/fetch.sh" "$kernel")
	headers=$(cd "$image/build" && pwd)
	;;
*) headers=$("$here/headers.sh" "$kernel") ;;
esac

major_of_kernel() {
	sed -n 's/^CONFIG_GCC_VERSION=\([0-9]*\)[0-9]\{4\}$/\1/p' "$headers/.config" 2>/dev/null
}

tools_run() {
	local modpost
	modpost=$(readlink -f "$headers/scripts")/mod/modpost
	[ ! -x "$modpost" ] || ! ldd "$modpost" 2>&1 | grep -q 'not found'
}

host_is_enough() {
	local theirs ours
	theirs=$(major_of_kernel)
	ours=$(gcc -dumpversion | cut -d . -f 1)
	[ "${theirs:-0}" -le "$ours" ] && tools_run
}

# Everything that gcc and make need, as apt itself resolves it for an empty system.
tools_uris() { # GCC
	uris_of install "$1" make dash bash coreutils sed grep gawk findutils perl-base diffutils libelf1
}

unpack_tools() { # GCC
	local deb
	mkdir -p "$new"/usr/{bin,sbin,lib,lib64} "$new"/{dev,tmp,proc}
	for deb in bin sbin lib lib64; do ln -s "usr/$deb" "$new/$deb"; done
	download <<<"$uris" >"$new.files"
	while read -r deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$new" -x --keep-directory-symlink --exclude='./usr/share/*'
	done <"$new.files"
	rm "$new.files"
	ln -sf "$1" "$new/usr/bin/gcc"
	[ -e "$new/usr/bin/sh" ] || ln -s dash "$new/usr/bin/sh"
	[ -e "$new/usr/bin/awk" ] || ln -s gawk "$new/usr/bin/awk"
}

# Sets $there to the root in which they are.
find_tools() {
	local gcc suite
	[ "$(id -u)" = 0 ] || cannot "the compiler of $kernel needs root (a chroot)"
	gcc=gcc-$(major_of_kernel)
	suite=$(suite_of "$kernel")
	prepare_apt "$suite"
	uris=$(about_packages "tools-$gcc" tools_uris "$gcc")
	# shellcheck disable=SC2086 # a list of files
	in_cache "tools-$gcc" "$(echo "$uris" | key_of $makers)" unpack_tools "$gcc"
}

copy_sources() {
	rm -rf "$dir/made-from" "$dir/kmod" "$dir"/otprof* "$dir"/.[!.]*
	cp -r "$top/Kbuild" "$top/kmod" "$dir/"
}

here_make() {
	make -C "$headers" M="$dir" CC=gcc W=1 KCFLAGS="$flags" CONFIG_DEBUG_INFO_BTF_MODULES= modules
}

# Paths are the same inside, so that headers and messages need no translation.
# The check of documentation comments (another language's interpreter) stays away.
chroot_make() {
	local root=$there
	mkdir -p "$root$cache" "$root$dir"
	# shellcheck disable=SC2016
	unshare -m sh -e -c '
		mount --make-rprivate /
		mount --bind "$2" "$1$2"
		mount --bind "$3" "$1$3"
		mount --bind /dev "$1/dev"
		mount --bind /proc "$1/proc"
		PATH=$PATH:/usr/sbin exec chroot "$1" /usr/bin/env -i PATH=/usr/bin \
			make -C "$4" M="$3" CC=gcc W=1 CONFIG_DEBUG_INFO_BTF_MODULES= cmd_checkdoc= modules
	' sh "$root" "$cache" "$dir" "$headers"
}

# Of everything that the module is made from; headers and tools have theirs in their names.
key=$(find "$top/Kbuild" "$top/kmod" "$top/tests/kmod/old_release.h" "$0" -type f -not -name '.*' | LC_ALL=C sort | xargs cat |
	key_of <(echo "$headers $flags $(gcc --version | head -n 1)"))
exec 9>"$dir.lock"
flock 9
[ "$(cat "$dir/made-from" 2>/dev/null)" != "$key" ] || exit 0
copy_sources
if host_is_enough; then
	how=here_make
else
	how=chroot_make
	find_tools
fi
if ! $how >"$dir/log" 2>&1; then
	grep -m 5 -iE 'error|not found|cannot' "$dir/log" || tail -n 5 "$dir/log"
	exit 1
fi
# Some headers warn about themselves under W=1: only what our own files are told counts.
! grep -E '(^|/)kmod/[^:]*:[0-9]+:.*warning|WARNING: modpost|objtool' "$dir/log" || exit 1
echo "$key" >"$dir/made-from"
