#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian system with systemd as a disk image, once, and prints its
# directory; image_boot.sh boots it.
#
#   image.sh [-d "PACKAGE..."] [-x "SCRIPT FILE..."] [-s SIZE] SUITE [PACKAGE...]
#
# SUITE: bullseye, bookworm or trixie. PACKAGEs are installed (no recommends), natively
# in a chroot: under emulation that is slow. -d: packages that are only
# downloaded, for the guest to install; what they depend on is installed.
# -x: a script that runs in the chroot at last, with FILEs beside it; it may warm
# caches, and the image is kept whatever it says. SIZE of the file system: 3G, sparse.
# In names, @previous and @newest are the versions of the suite's last two
# own cloud kernels ("linux-headers-@newest"); without any kernel among PACKAGEs
# the newest is taken. The directory holds
#
#   root.img            ext4, the whole disk; copy before writing
#   vmlinuz initrd      of the (first) installed kernel; version: its `uname -r`
#   previous newest     the versions meant by @previous and @newest
#   debs/               what -d named
#
# Image, base system and downloaded packages are kept in the cache
# (OTPROF_GUEST_CACHE); the mirror is the system's own. 77 and a reason on
# stderr where it cannot be made (root, debootstrap).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/guest/apt.sh
. "$here/apt.sh"

BASE="systemd systemd-sysv udev dbus kmod zstd initramfs-tools iproute2 procps python3-minimal"

download='' hook='' size=3G
while getopts d:x:s: option; do
	case $option in
	d) download=$OPTARG ;;
	x) hook=$OPTARG ;;
	s) size=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
suite=${1:?usage: image.sh [-d "PACKAGE..."] [-x "SCRIPT FILE..."] [-s SIZE] SUITE [PACKAGE...]}
shift
packages=$*
case " $packages" in *" linux-image-"*) ;; *) packages="linux-image-@newest $packages" ;; esac

for tool in debootstrap mke2fs unshare chroot; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || cannot "no $tool"
done
[ "$(id -u)" = 0 ] || cannot "a chroot needs root"
# Of all that is installed natively, whatever the tree.
archives=$cache/debs-$suite
mkdir -p "$archives/partial"

# The suite with its security updates, where the mirror has those beside it.
write_sources() {
	local url security
	url=$(mirror)
	security=${url%/}
	security=${security%/debian}/debian-security
	printf 'deb %s %s main\n' "$url" "$suite" >"$1/etc/apt/sources.list"
	printf 'Acquire::Languages "none";\n' >"$1/etc/apt/apt.conf.d/90guest"
	printf 'deb %s %s-security main\n' "$security" "$suite" >"$1/etc/apt/sources.list.d/security.list"
	inside "$1" apt-get update >"$log" 2>&1 || rm "$1/etc/apt/sources.list.d/security.list"
	inside "$1" apt-get update >"$log" 2>&1 || cannot "no package list of $suite: $(grep -m 1 '^E' "$log")"
}

# Commands in a tree, with the file systems that packages ask for, and the packages that are here already; the
# mounts vanish with the namespace.
inside() {
	local tree=$1
	shift
	# shellcheck disable=SC2016 # expanded by the inner shell
	flock "$archives.lock" unshare --mount --propagation private sh -c '
		tree=$1 && archives=$2 && shift 2
		mount -t proc proc "$tree/proc" && mount -t sysfs -o ro sysfs "$tree/sys" &&
		mount --bind "$archives" "$tree/var/cache/apt/archives" &&
		DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot "$tree" "$@"' \
		sh "$tree" "$archives" "$@" </dev/null
}

make_minbase() {
	log=$new.log
	debootstrap --variant=minbase --cache-dir="$archives" --include="${BASE// /,}" "$suite" "$new" "$(mirror)" >"$log" 2>&1 ||
		cannot "debootstrap: $(tail -n 1 "$log")"
	configure "$new"
	write_sources "$new"
	rm -f "$new"/var/cache/apt/archives/*.deb "$log"
}

# No services during installation, no writing through to the disk, an initrd
# for this machine only, and nothing that wakes up by itself during a test.
configure() {
	local etc=$1/etc
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod 755 "$1/usr/sbin/policy-rc.d"
	echo force-unsafe-io >"$etc/dpkg/dpkg.cfg.d/guest"
	mkdir -p "$etc/initramfs-tools/conf.d"
	printf 'MODULES=list\nCOMPRESS=gzip\n' >"$etc/initramfs-tools/conf.d/guest"
	printf 'virtio_pci\nvirtio_blk\next4\n' >>"$etc/initramfs-tools/modules"
	echo guest >"$etc/hostname"
	printf '127.0.0.1 localhost guest\n::1 localhost\n' >"$etc/hosts"
	tr -d - </proc/sys/kernel/random/uuid >"$etc/machine-id"
	echo '/dev/vda / ext4 rw,noatime 0 0' >"$etc/fstab"
	for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
		serial-getty@ttyS0.service getty@tty1.service getty-static.service e2scrub_reap.service \
		systemd-pcrphase.service systemd-pcrphase-sysinit.service; do
		ln -sf /dev/null "$etc/systemd/system/$unit"
	done
	add_runner "$1"
}

# The test is the last thing of the boot, so that what it asks is about a system that is up.
add_runner() {
	local unit=$1/etc/systemd/system
	mkdir -p "$1/files"
	cp "$here/image_runner.sh" "$1/usr/local/sbin/guest-test"
	chmod 755 "$1/usr/local/sbin/guest-test"
	cat >"$unit/guest.target" <<-UNIT
		[Unit]
		Requires=multi-user.target
		After=multi-user.target
		Wants=guest-test.service
		AllowIsolate=yes
	UNIT
	cat >"$unit/guest-test.service" <<-UNIT
		[Unit]
		After=multi-user.target
		[Service]
		ExecStart=/usr/local/sbin/guest-test
		StandardOutput=file:/dev/ttyS0
		StandardError=inherit
	UNIT
}

# The suite's own cloud kernels (security has those of newer suites too) that have headers, oldest first.
kernels() {
	local series
	series=$(inside "$1" apt-cache show linux-image-cloud-amd64 |
		sed -n 's/^Depends: linux-image-\([0-9]*\.[0-9]*\)\..*/\1/p' | head -n 1)
	inside "$1" apt-cache pkgnames linux-headers- |
		sed -n "s/^linux-headers-\($series\.[0-9].*-cloud-amd64\)\$/\1/p" | sort -V
}

expand() {
	echo "$*" | sed "s/@previous/$previous/g; s/@newest/$newest/g"
}

# Of alternatives the first.
depends_of() {
	# shellcheck disable=SC2046 # a list of names
	inside "$root" apt-cache depends $(expand "$download") |
		awk '/Depends: / && !more && $2 !~ /^</ { print $2 } { more = /^ *\|/ }' |
		grep -vxF "$(expand "$download" | tr ' ' '\n')" | sort -u
}

run_hook() {
	[ -n "$hook" ] || return 0
	mkdir "$root/var/hook"
	# shellcheck disable=SC2086 # a list of files
	cp -r $hook "$root/var/hook/"
	inside "$root" sh "/var/hook/$(basename "${hook%% *}")" >>"$log" 2>&1 || echo "the script failed" >>"$log"
	rm -r "$root/var/hook"
}

install_packages() {
	# shellcheck disable=SC2046,SC2086 # lists of names
	inside "$root" apt-get install -y -q --no-install-recommends $(expand $packages) \
		$([ -z "$download" ] || depends_of) >>"$log" 2>&1 ||
		cannot "packages: $(grep -m 3 '^E:' "$log" | tr '\n' ' ')"
	mkdir -p "$new/debs" "$root/var/debs"
	# shellcheck disable=SC2046,SC2086
	[ -z "$download" ] ||
		inside "$root" sh -c 'cd /var/debs && apt-get download -q "$@"' sh $(expand $download) >>"$log" 2>&1 ||
		cannot "packages: $(grep -m 3 '^E:' "$log" | tr '\n' ' ')"
	run_hook
	find "$root/var/debs" -name '*.deb' -exec mv -t "$new/debs" {} +
}

make_disk() {
	local kernel
	kernel=$(find "$root/boot" -name 'vmlinuz-*' | sort -V | head -n 1)
	[ -n "$kernel" ] || cannot "no kernel in $packages"
	echo "${kernel##*/vmlinuz-}" >"$new/version"
	echo "$previous" >"$new/previous"
	echo "$newest" >"$new/newest"
	cp "$kernel" "$new/vmlinuz"
	cp "$root/boot/initrd.img-${kernel##*/vmlinuz-}" "$new/initrd"
	rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/tmp/* "$root"/var/lib/apt/lists/*
	# What systemd does once after an update of /usr (hardware database, catalog, ldconfig) was done by the packages.
	touch "$root/etc/.updated" "$root/var/.updated"
	# The guest has no network: what it installs comes as files.
	rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root/usr/sbin/policy-rc.d"
	mke2fs -q -F -t ext4 -L root -E lazy_itable_init=1,lazy_journal_init=1 -d "$root" "$new/root.img" "$size" \
		>>"$log" 2>&1 || cannot "mke2fs: $(tail -n 1 "$log")"
	rm -rf "$root"
}

make_image() {
	log=$new/log
	root=$new/root
	cp -a "$minbase" "$root"
	newest=$(kernels "$root" | tail -n 1)
	previous=$(kernels "$root" | tail -n 2 | head -n 1)
	[ -n "$newest" ] || cannot "no cloud kernel in $suite"
	install_packages
	make_disk
}

kernel_uri() {
	uris_of download linux-image-cloud-amd64
}

# A new kernel of the suite makes new images.
prepare_apt "$suite"
kernel=$(about_packages newest-kernel kernel_uri)
in_cache "minbase-$suite" "$(key_of "$0" "$here/image_runner.sh" <<<"$BASE $kernel")" make_minbase
minbase=$there
# The files that the hook gets besides itself are the guest's to know: what is made of them is a cache.
hooks=$(for file in $hook; do [ ! -f "$file" ] || echo "$file"; done)
# shellcheck disable=SC2086 # a list of files
in_cache "image-$suite" "$(key_of "$0" $hooks <<<"$minbase $packages / $download / $size")" make_image
echo "$there"
