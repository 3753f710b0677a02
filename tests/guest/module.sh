#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the module for a guest's kernel, W=1, and fails on a warning about our
# own files.  module.sh KERNEL DIRECTORY [FLAGS]   leaves DIRECTORY/otprof.ko;
# the compiler gets FLAGS, where it is the host's.
#
# The compiler is the host's where it can do what the kernel's own could, and
# the kernel's build tools run here. Where not, it is the one of the kernel's
# Debian suite: unpacked beside its headers and run in a chroot, as root.
# 77 and a reason where headers or compiler cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=${OTPROF_GUEST_CACHE:-$top/build/guest}
# shellcheck source=tests/guest/apt.sh
. "$here/apt.sh"
kernel=${1:?usage: module.sh KERNEL DIRECTORY}
mkdir -p "${2:?usage: module.sh KERNEL DIRECTORY}"
dir=$(cd "$2" && pwd)
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

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
unpack_tools() { # ROOT GCC
	local new=$1.new.$$ deb
	apt=$new/apt
	# shellcheck disable=SC2064
	trap "rm -rf '$new'" EXIT
	mkdir -p "$new"
	prepare_apt "$(suite_of "$kernel")"
	private_apt apt-get -y --no-install-recommends --download-only -o Debug::NoLocking=true install \
		"$2" make dash bash coreutils sed grep gawk findutils perl-base diffutils libelf1 \
		>>"$apt/update.log" 2>&1 || cannot "no compiler: $(tail -n 1 "$apt/update.log")"
	mkdir -p "$new"/usr/{bin,sbin,lib,lib64} "$new"/{dev,tmp}
	for deb in bin sbin lib lib64; do ln -s "usr/$deb" "$new/$deb"; done
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$new" -x --keep-directory-symlink --exclude='./usr/share/*'
	done
	ln -sf "$2" "$new/usr/bin/gcc"
	[ -e "$new/usr/bin/sh" ] || ln -s dash "$new/usr/bin/sh"
	[ -e "$new/usr/bin/awk" ] || ln -s gawk "$new/usr/bin/awk"
	rm -rf "$apt"
	mv -T "$new" "$1" 2>/dev/null || [ -d "$1" ] # another one may have been faster
}

copy_sources() {
	rm -rf "$dir/kmod" "$dir"/otprof* "$dir"/.[!.]*
	cp -r "$top/Kbuild" "$top/kmod" "$dir/"
}

here_make() {
	make -C "$headers" M="$dir" CC=gcc W=1 KCFLAGS="$flags" CONFIG_DEBUG_INFO_BTF_MODULES= modules
}

# Paths are the same inside, so that headers and messages need no translation.
# The check of documentation comments (another language's interpreter) stays away.
chroot_make() {
	local root=$cache/tools-${kernel%-rt}
	[ "$(id -u)" = 0 ] || cannot "the compiler of $kernel needs root (a chroot)"
	[ -d "$root" ] || unpack_tools "$root" "gcc-$(major_of_kernel)"
	mkdir -p "$root$cache" "$root$dir" "$root/proc"
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

copy_sources
how=chroot_make
! host_is_enough || how=here_make
if ! $how >"$dir/log" 2>&1; then
	grep -m 5 -iE 'error|not found|cannot' "$dir/log" || tail -n 5 "$dir/log"
	exit 1
fi
# Some headers warn about themselves under W=1: only what our own files are told counts.
! grep -E '(^|/)kmod/[^:]*:[0-9]+:.*warning|WARNING: modpost|objtool' "$dir/log"
