#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots an image of image.sh in QEMU, runs a script in it when the system is
# up, and ends with the script's exit code.
#
#   image_boot.sh [-t SECONDS] [-m MEGABYTES] [-c CPUS] [-a "KERNEL ARGUMENTS"]
#                 [-d DISK] [-o LOG] IMAGE SCRIPT [FILE[=NAME]]...
#
# IMAGE is the directory that image.sh printed. SCRIPT (for sh) gets the
# number of the boot, 1 at first. FILEs are below /files, read-only, where it
# starts. It ends with 100 to be called again after a reboot, which is orderly:
# by the kernel whose version it wrote to /var/lib/guest-kernel, or the same.
# The disk is a copy, kept as DISK if that is named. The console goes to stdout (and LOG).
#
# Exit code: SCRIPT's; 124 when the time (300 s, all boots) was over; 125 where
# the guest did not come to an end by itself; 126 after a warning, oops or RCU
# line of the kernel; 77 where QEMU cannot be had.
set -euo pipefail

seconds=300 memory=1024 cpus=2 append='' keep='' log='' again=100
while getopts t:m:c:a:d:o: option; do
	case $option in
	t) seconds=$OPTARG ;;
	m) memory=$OPTARG ;;
	c) cpus=$OPTARG ;;
	a) append=$OPTARG ;;
	d) keep=$OPTARG ;;
	o) log=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
image=${1:?usage: image_boot.sh IMAGE SCRIPT [FILE...]}
script=${2:?usage: image_boot.sh IMAGE SCRIPT [FILE...]}
shift 2
PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64 mke2fs debugfs; do
	command -v $tool >/dev/null || { echo "image_boot.sh: no $tool" >&2; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
disk=${keep:-$work/disk}
cp --sparse=always "$image/root.img" "$disk"
cp "$image/vmlinuz" "$image/initrd" "$work/"

make_files() {
	local file name
	mkdir "$work/files"
	cp "$script" "$work/files/test"
	for file; do
		name=$(basename "${file%%=*}")
		[ "$file" = "${file%%=*}" ] || name=${file#*=}
		mkdir -p "$work/files/$(dirname "$name")"
		cp -RL "${file%%=*}" "$work/files/$name"
	done
	chmod -R a+rX "$work/files"
	mke2fs -q -F -t ext4 -d "$work/files" "$work/files.img" \
		$(($(du -sm "$work/files" | cut -f 1) * 5 / 4 + 16))M >/dev/null
}

# As in boot.sh: one thread for all CPUs, no cmpxchg16b, no check of the timer.
boot() {
	local left=$((seconds - SECONDS)) code=0
	[ $left -gt 0 ] || return 124
	timeout --foreground $left qemu-system-x86_64 -accel tcg,thread=single -cpu max,-cx16 -smp "$cpus" -m "$memory" \
		-nodefaults -no-user-config -display none -serial stdio -no-reboot -net none -device virtio-rng-pci \
		-drive file="$disk",if=virtio,format=raw,cache=unsafe \
		-drive file="$work/files.img",if=virtio,format=raw,readonly=on \
		-kernel "$work/vmlinuz" -initrd "$work/initrd" -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 \
no_timer_check random.trust_cpu=on systemd.unit=guest.target systemd.show_status=no audit=0 $append" \
		</dev/null | sed -u 's/\r//g' | tee "$work/console" || code=${PIPESTATUS[0]}
	cat "$work/console" >>"$work/log"
	return "$code"
}

from_disk() { # PATH FILE
	debugfs -R "dump $1 $2" "$disk" 2>/dev/null
	[ -s "$2" ]
}

next_kernel() {
	from_disk /var/lib/guest-kernel "$work/version" || return 0
	from_disk "/boot/vmlinuz-$(cat "$work/version")" "$work/vmlinuz" &&
		from_disk "/boot/initrd.img-$(cat "$work/version")" "$work/initrd"
}

make_files "$@"
bad='cut here|^(\[[^]]*\] )?(WARNING|BUG|INFO: (rcu|task|possible)|Oops|Call Trace|general protection)|rcu.*(stall|detected)|Kernel panic|KASAN|UBSAN|blocked for more than'
: >"$work/log"
while :; do
	code=0
	boot || code=$?
	[ -z "$log" ] || cp "$work/log" "$log"
	if grep -aE "$bad" "$work/console" >"$work/bad"; then
		echo "image_boot.sh: the kernel complained:" >&2
		head -n 5 "$work/bad" >&2
		exit 126
	fi
	[ $code = 0 ] || exit $code
	status=$(sed -n 's/^guest-exit: \([0-9]*\)$/\1/p' "$work/console" | tail -n 1)
	[ "${status:-125}" = $again ] || exit "${status:-125}"
	next_kernel || { echo "image_boot.sh: no kernel $(cat "$work/version") on the disk" >&2; exit 125; }
done
