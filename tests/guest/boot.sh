#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a kernel in QEMU with an initramfs made of busybox and the given files,
# runs a script in it and ends with the script's exit code.
#
#   boot.sh -k KERNEL [-t SECONDS] [-m MEGABYTES] [-a "KERNEL ARGUMENTS"]
#           [-M MODULE]... [-r ROOT] [-o LOG] [-i SHIFT] SCRIPT [FILE[=GUEST_PATH]]...
#
# FILE is copied to /bin/ (or GUEST_PATH) with the shared libraries that it
# needs; a directory is copied whole. ROOT is a tree that is laid under it all.
# OTPROF_GUEST_ARCH=arm64: ROOT brings bin/busybox and every library.
# SCRIPT runs in a memory cgroup of its own, unless OTPROF_GUEST_MEMCG=no.
# MODULE is loaded before SCRIPT, with what it depends on. The console goes to
# stdout (and LOG). With SHIFT, there is one CPU, on which an instruction takes
# 2^SHIFT ns of the guest's time, and idle time passes at once: however busy the
# host is, no tick of the guest is late.
# Exit code: SCRIPT's; 124 when the time (300 s) was over; 125 where the guest
# did not come to an end by itself; 126 after a warning, oops or RCU line of
# the kernel; 77 where the kernel or QEMU cannot be had.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
kernel='' seconds=300 memory=1024 append='' modules=() under='' log='' cpus=2 clock=()
while getopts k:t:m:a:M:r:o:i: option; do
	case $option in
	k) kernel=$OPTARG ;;
	t) seconds=$OPTARG ;;
	m) memory=$OPTARG ;;
	a) append=$OPTARG ;;
	M) modules+=("$OPTARG") ;;
	r) under=$OPTARG ;;
	o) log=$OPTARG ;;
	i) cpus=1 clock=(-icount "shift=$OPTARG,sleep=off") ;; # a second one would never start
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
script=${1:?usage: boot.sh -k KERNEL SCRIPT [FILE...]}
shift

# One thread for all virtual CPUs, and no cmpxchg16b, which the allocator uses from 6.5 on: QEMU 7.2
# emulates it wrongly now and then, and kernels crash at places that have nothing to do with it.
# no_timer_check: on a busy host the timer's first interrupts come too late for it, and the kernel panics.
# arm64: signed return addresses by a cipher of QEMU's own, which is quick; no LPA2, which kernels before
# 5.12 do not boot with.
case ${OTPROF_GUEST_ARCH:-amd64} in
arm64)
	qemu="qemu-system-aarch64"
	machine=(-machine virt -cpu "max,sve=off,lpa2=off,pauth-impdef=on")
	console="console=ttyAMA0"
	;;
*)
	qemu="qemu-system-x86_64"
	machine=(-cpu "max,-cx16")
	console="console=ttyS0 no_timer_check"
	;;
esac
for tool in $qemu cpio busybox; do
	command -v $tool >/dev/null || { echo "boot.sh: no $tool" >&2; exit 77; }
done
image=$("$here/fetch.sh" "$kernel")
append="$append OTPROF_MEMCG=${OTPROF_GUEST_MEMCG:-yes}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"

add_libraries() {
	# Names of libraries, and the loader, as absolute paths; static files have none.
	{ ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true; } | while read -r library; do
		[ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
	done
}

add_file() {
	local from=${1%%=*} to
	to=/bin/$(basename "$from")
	[ "$from" = "$1" ] || to=${1#*=}
	mkdir -p "$root$(dirname "$to")"
	cp -aL "$from" "$root$to"
	if [ -d "$from" ]; then
		find "$from" -type f -perm -u+x | while read -r each; do add_libraries "$each"; done
	else
		add_libraries "$from"
	fi
}

# Appends the module's dependencies before itself to /modules.list.
add_module() {
	local file depend
	file=$(find "$image/root" -name "$1.ko*" -o -name "${1//_/-}.ko*" | head -n 1)
	[ -n "$file" ] || return 0 # built in
	grep -qx "$1" "$root/modules.list" 2>/dev/null && return 0
	for depend in $(/sbin/modinfo -F depends "$file" | tr ',' ' '); do
		add_module "$depend"
	done
	case $file in
	*.xz) xz -dc "$file" >"$root/modules/$1.ko" ;;
	*.zst) zstd -qdc "$file" >"$root/modules/$1.ko" ;;
	*) cp "$file" "$root/modules/$1.ko" ;;
	esac
	echo "$1" >>"$root/modules.list"
}

make_root() {
	mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp,run,root,var/tmp,modules}
	[ -z "$under" ] || cp -a "$under/." "$root/"
	chmod 755 "$root" "$root/root"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	[ -e "$root/bin/busybox" ] || cp "$(command -v busybox)" "$root/bin/busybox"
	for applet in $(busybox --list); do
		[ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
	done
	[ -e "$root/sbin" ] || ln -s bin "$root/sbin"
	cp "$here/init.sh" "$root/init"
	cp "$script" "$root/script"
	chmod 755 "$root/init" "$root/script"
	[ -e "$root/etc/passwd" ] || cp "$here/passwd" "$root/etc/passwd"
	[ -e "$root/etc/group" ] || sed 's/^\([^:]*\):x:[0-9]*:\([0-9]*\):.*/\1:x:\2:/' "$here/passwd" >"$root/etc/group"
	for module in ${modules[@]+"${modules[@]}"}; do
		add_module "$module"
	done
}

make_root
for file; do
	add_file "$file"
done
(cd "$root" && find . -print0 | cpio -0 -o -H newc --quiet -R 0:0) >"$work/initramfs"

code=0
timeout --foreground "$seconds" $qemu -accel tcg,thread=single "${machine[@]}" ${clock[@]+"${clock[@]}"} -smp $cpus -m "$memory" \
	-nodefaults -no-user-config -display none -serial stdio -no-reboot -net none -device virtio-rng-pci \
	-kernel "$image/vmlinuz" -initrd "$work/initramfs" \
	-append "$console quiet panic=-1 random.trust_cpu=on $append" \
	</dev/null | sed -u 's/\r//g' | tee "$work/log" || code=${PIPESTATUS[0]}
[ -z "$log" ] || cp "$work/log" "$log"

bad='cut here|^(\[[^]]*\] )?(WARNING|BUG|INFO: (rcu|task|possible|trying)|Oops|Call Trace|general protection)|rcu.*(stall|detected)|Kernel panic|KASAN|UBSAN|blocked for more than'
# What full memory makes the kernel say is no complaint, and of data races only those count that
# the module has a part in. The kernel's quick clock reads again what changed under it, and 6.1 does
# not tell its detector so.
of_interest() {
	awk '
		/invoked oom-killer/ { full = 1 }
		/Killed process/ { full = 0; next }
		full { next }
		/BUG: KCSAN:/ { racing = 1; race = "" }
		racing {
			race = race $0 "\n"
			if (!/==========/) next
			if (race ~ /otprof/ && race !~ /data-race in ktime_get_mono_fast_ns/) printf "%s", race
			racing = 0
			next
		}
		{ print }
		END { if (full || racing) print "BUG: the end of a report of the kernel is missing" }' "$work/log"
}
if of_interest | grep -aE "$bad" >"$work/bad"; then
	echo "boot.sh: the kernel complained:" >&2
	head -n 5 "$work/bad" >&2
	exit 126
fi
[ "$code" = 0 ] || exit "$code"
status=$(sed -n 's/^guest-exit: \([0-9]*\)$/\1/p' "$work/log" | tail -n 1)
exit "${status:-125}"
