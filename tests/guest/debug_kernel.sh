#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a kernel that watches the module, from Debian's linux-source package,
# into the cache of guest kernels, and prints its directory. As root, the
# packages that the build needs are installed; no other part of the host changes.
#
#   debug_kernel.sh [-n] kasan|kcsan      -n: makes nothing
#
# kasan: bad memory accesses, lockdep, sleeping in atomic context, timers and
# RCU heads in a wrong state, leaks, and allocations that fail on request.
# kcsan: data races, strictly: plain accesses count too, and an interrupt races
# with what it interrupted. The two exclude each other.
# Takes 5 minutes on two cores the first time (10 of CPU), no time after that,
# and 2 GB of the cache, OTPROF_GUEST_CACHE: outside of the clone it outlives
# it. tests/guest/kmod_run.sh kasan kcsan (or make check-kmod FULL=1) finds it
# by itself. Exit code 77 and a reason where it cannot be had.
set -eu
# shellcheck source=tests/guest/apt.sh
. "$(dirname "$0")/apt.sh"
release=6.1 suite=bookworm
make=yes
[ "${1:-}" != -n ] || { make=no && shift; }
what=${1:?usage: debug_kernel.sh [-n] kasan|kcsan}

# What a guest of these tests lives on, over an empty configuration.
common="64BIT SMP PRINTK TTY SERIAL_8250 SERIAL_8250_CONSOLE BLK_DEV_INITRD RD_GZIP BINFMT_ELF BINFMT_SCRIPT
	PROC_FS SYSFS DEVTMPFS DEVTMPFS_MOUNT TMPFS SHMEM MODULES MODULE_UNLOAD HIGH_RES_TIMERS NO_HZ_IDLE
	HOTPLUG_CPU PERF_EVENTS NET INET UNIX FUTEX EPOLL SIGNALFD TIMERFD EVENTFD MEMBARRIER KALLSYMS
	KALLSYMS_ALL MULTIUSER POSIX_TIMERS FILE_LOCKING CGROUPS NAMESPACES BUG CROSS_MEMORY_ATTACH SYSCTL
	PROC_SYSCTL ADVISE_SYSCALLS AIO SECCOMP SECCOMP_FILTER STACKTRACE UNWINDER_ORC EXPERT BPF_SYSCALL
	IA32_EMULATION MODIFY_LDT_SYSCALL ELF_CORE COREDUMP PCI ACPI VIRTIO_MENU VIRTIO VIRTIO_PCI HW_RANDOM
	HW_RANDOM_VIRTIO INOTIFY_USER UNIX98_PTYS SYSVIPC MEMFD_CREATE SLUB PREEMPT GENERIC_TRACER DEBUG_FS
	HARDENED_USERCOPY DEBUG_KERNEL DEBUG_MISC FRAME_WARN MAGIC_SYSRQ SWAP BLOCK MEMCG OVERLAY_FS
	DETECT_HUNG_TASK SOFTLOCKUP_DETECTOR DEBUG_LIST"
# On by default once the others are there, and of no use here: each costs time to build.
off="SLOB PREEMPT_NONE RANDOMIZE_BASE LOCALVERSION_AUTO IPV6 INPUT VT HID HID_SUPPORT USB_SUPPORT WIRELESS WLAN
	ETHERNET NETDEVICES ETHTOOL_NETLINK HWMON THERMAL NETFILTER SERIO MAILBOX FIRMWARE_MEMMAP MSDOS_PARTITION
	MICROCODE X86_MCE DEBUG_INFO_BTF VIRTIO_BLK NET_SCHED SCSI MD KCSAN_SELFTEST KCSAN_WEAK_MEMORY"
kasan="KASAN KASAN_INLINE KASAN_VMALLOC PROVE_LOCKING DEBUG_ATOMIC_SLEEP DEBUG_OBJECTS DEBUG_OBJECTS_FREE
	DEBUG_OBJECTS_TIMERS DEBUG_OBJECTS_WORK DEBUG_OBJECTS_RCU_HEAD DEBUG_KMEMLEAK
	DEBUG_KMEMLEAK_DEFAULT_OFF FAULT_INJECTION FAILSLAB FAIL_PAGE_ALLOC FAULT_INJECTION_DEBUG_FS UBSAN
	UBSAN_BOUNDS UBSAN_SHIFT"
kcsan="KCSAN KCSAN_STRICT"
# The configuration must have kept these, or the kernel watches less than its name says.
must_kasan="KASAN KASAN_VMALLOC PROVE_LOCKING DEBUG_ATOMIC_SLEEP DEBUG_OBJECTS_TIMERS DEBUG_OBJECTS_RCU_HEAD
	DEBUG_KMEMLEAK FAILSLAB UBSAN HOTPLUG_CPU HIGH_RES_TIMERS PREEMPT IA32_EMULATION"
must_kcsan="KCSAN KCSAN_STRICT KCSAN_INTERRUPT_WATCHER HOTPLUG_CPU HIGH_RES_TIMERS PREEMPT IA32_EMULATION"

case $what in
kasan) options=$kasan must=$must_kasan ;;
kcsan) options=$kcsan must=$must_kcsan ;;
*) cannot "no kernel is called $what: kasan or kcsan" ;;
esac

install_tools() {
	missing=
	for package in gcc make flex bison bc libssl-dev libelf-dev xz-utils; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	[ "$(id -u)" = 0 ] || cannot "missing:$missing"
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends install $missing >"$cache/tools.log" 2>&1 ||
		cannot "$(tail -n 1 "$cache/tools.log")"
}

uris() {
	uris_of download "linux-source-$release"
}

unpack_source() {
	echo "$uris" | unpack_into "$new/deb"
	tar -C "$new" --strip-components=1 -xf "$new/deb/usr/src/linux-source-$release.tar.xz"
	rm -r "$new/deb"
}

configure() {
	make -C "$source" O="$1" tinyconfig >"$1/log" 2>&1
	for option in $common $options; do
		echo "CONFIG_$option=y"
	done >"$1/fragment"
	for option in $off; do
		echo "# CONFIG_$option is not set"
	done >>"$1/fragment"
	cat >>"$1/fragment" <<-END
		CONFIG_FRAME_WARN=4096
		CONFIG_NR_CPUS=4
		CONFIG_DEFAULT_HUNG_TASK_TIMEOUT=60
		CONFIG_KCSAN_REPORT_ONCE_IN_MS=100000
		CONFIG_LOCALVERSION="-$what"
	END
	sed -i '/^CONFIG_FRAME_WARN=y$/d' "$1/fragment"
	(cd "$source" && scripts/kconfig/merge_config.sh -m -O "$1" "$1/.config" "$1/fragment") >>"$1/log" 2>&1
	make -C "$source" O="$1" olddefconfig >>"$1/log" 2>&1
	for option in $must; do
		grep -q "^CONFIG_$option=y" "$1/.config" || cannot "the configuration lost CONFIG_$option"
	done
}

build() {
	make -C "$source" O="$1" -j"$(nproc)" bzImage modules_prepare >>"$1/log" 2>&1 ||
		cannot "not built: $(grep -m 1 -i error "$1/log") (log: $1/log)"
	cp "$1/vmlinux.symvers" "$1/Module.symvers"
}

make_kernel() {
	mkdir -p "$there/build" "$there/root"
	install_tools
	configure "$there/build"
	build "$there/build"
	make -s -C "$source" O="$there/build" kernelrelease >"$there/version"
	cp "$there/build/arch/x86/boot/bzImage" "$there/vmlinuz.new"
	mv "$there/vmlinuz.new" "$there/vmlinuz"
}

prepare_apt "$suite"
uris=$(about_packages "source-$release" uris)
# shellcheck disable=SC2086 # a list of files
key=$(echo "$uris" | key_of $makers)
kernel=$cache/kernel-$what-$key
# It names its own directory, so it is built in its place: what is whole has a vmlinuz.
if [ $make = yes ] && [ ! -e "$kernel/vmlinuz" ]; then
	in_cache "linux-source-$release" "$key" unpack_source
	source=$there
	there=$kernel
	exec 9>"$kernel.lock"
	flock 9
	[ -e "$there/vmlinuz" ] || make_kernel
fi
[ ! -d "$kernel" ] || touch "$kernel"
echo "$kernel"
