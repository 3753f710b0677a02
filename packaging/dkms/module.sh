#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernel module, without a package:
#
#   module.sh build VERSION KERNEL_DIRECTORY OUT   leaves OUT/otprof.ko
#   module.sh install VERSION                      hands it to DKMS, which builds it for the running kernel
#                                                  now and for each later one when that is installed
#   module.sh remove VERSION                       takes it back, from every kernel
#
# KVER names another kernel than the running one. What is missing is named,
# with the package that has it; then the exit code is 1.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
kver=${KVER:-$(uname -r)}
what=${1:-} version=${2:-}
tree=/usr/src/otprof-$version

die() {
	printf 'otprof: %s\n' "$@" >&2
	exit 1
}

# The package that has the headers of a kernel, by what installs packages here.
headers_package() {
	if command -v apt-get >/dev/null; then
		echo "apt install linux-headers-$kver"
	elif command -v dnf >/dev/null; then
		echo "dnf install kernel-devel-$kver"
	elif command -v zypper >/dev/null; then
		echo "zypper install kernel-devel"
	elif command -v pacman >/dev/null; then
		echo "pacman -S linux-headers"
	else
		echo "install your distribution's headers of kernel $kver"
	fi
}

dkms_package() {
	if command -v apt-get >/dev/null; then
		echo "apt install dkms"
	elif command -v dnf >/dev/null; then
		echo "dnf install dkms (on RHEL and its kin it is in EPEL)"
	elif command -v zypper >/dev/null; then
		echo "zypper install dkms"
	else
		echo "install your distribution's package dkms"
	fi
}

need_root() {
	[ "$(id -u)" = 0 ] || die "this changes /usr/src and /lib/modules: run it as root (sudo make dkms-$what)"
}

need_dkms() {
	command -v dkms >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v dkms >/dev/null ||
		die "no dkms here: $(dkms_package)" "or build for this kernel alone: make kmod"
	PATH=$PATH:/usr/sbin:/sbin
}

need_headers() {
	[ -e "$1/Makefile" ] || die "no headers of kernel $kver in $1: $(headers_package)" \
		"or name a kernel's build directory: make kmod KDIR=DIRECTORY"
}

# A package's files are the package's to change.
need_no_package() {
	owner=$(dpkg -S "$tree" 2>/dev/null || rpm -qf "$tree" 2>/dev/null) || return 0
	die "$tree belongs to a package (${owner%%:*}): remove that first"
}

copy_sources() {
	mkdir -p "$1"
	tar -C "$top" -c --exclude='*.o' --exclude='*.ko' --exclude='.*' Kbuild dkms.conf kmod | tar -x -C "$1" --no-same-owner
	sed -i "s/^\(PACKAGE_VERSION\)=.*/\1=\"$version\"/" "$1/dkms.conf"
}

# Which keys this kernel wants, and what is left to do about it.
say_signing() {
	mokutil --sb-state 2>/dev/null | grep -q 'SecureBoot enabled' || return 0
	echo "Secure Boot is on: this kernel loads signed modules only. DKMS has signed it with the key of this machine;"
	echo "if the firmware does not know that key yet: mokutil --import /var/lib/dkms/mok.pub, then restart and enrol it."
}

build() { # KERNEL_DIRECTORY OUT
	need_headers "$1"
	copy_sources "$2"
	make -C "$1" M="$(cd "$2" && pwd)" modules
	echo "$2/otprof.ko: insmod it, or make dkms-install"
}

# A tree of an earlier call is replaced, with what was built from it.
install() {
	need_root
	need_dkms
	need_headers "/lib/modules/$kver/build"
	need_no_package
	[ -z "$(dkms status -m otprof -v "$version")" ] || dkms remove -m otprof -v "$version" --all
	rm -rf "$tree"
	copy_sources "$tree"
	dkms add -m otprof -v "$version"
	dkms install -m otprof -v "$version" -k "$kver" ||
		die "DKMS could not build it; /var/lib/dkms/otprof/$version/build/make.log says why"
	say_signing
	echo "installed for $kver; modprobe otprof loads it, and otprofd finds it there (mode = auto or kmod)"
}

remove() {
	need_root
	need_dkms
	need_no_package
	[ ! -d /sys/module/otprof ] || modprobe -r otprof || die "the module is in use: stop otprofd first"
	[ -z "$(dkms status -m otprof -v "$version")" ] || dkms remove -m otprof -v "$version" --all
	rm -rf "$tree"
	echo "removed from every kernel"
}

case $what in
build) build "${3:?}" "${4:?}" ;;
install) install ;;
remove) remove ;;
*)
	echo "usage: module.sh build VERSION KERNEL_DIRECTORY OUT | install VERSION | remove VERSION" >&2
	exit 2
	;;
esac
