#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sampler's own test on every kernel that otprof promises, in QEMU, and on
# the running one where that is allowed; and in the same boot the whole daemon
# on the kernels that are furthest from the one it is made on.
#
#   run.sh [KERNEL...]      5.10 6.1 6.12 7.x; "native" for the running kernel, "arm64" for that
#
# Programs are $BUILD's (OTPROF_PROBE names another test program). A kernel
# that cannot be had is skipped with its reason. Exit code 1 where one failed,
# 77 where none ran.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build}
probe=${OTPROF_PROBE:-$build/probe}
[ $# -gt 0 ] || set -- native 5.10 6.1 6.12 7.x arm64
daemon_on=" 5.10 6.1 "
passed=0 failed=0 skipped=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT

on_native() {
	if [ "$(id -u)" = 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
		echo "# piece: sampler"
		timeout -k 10 600 "$probe"
	else
		echo "the running kernel: needs root and BTF"
		return 77
	fi
}

on_guest() { # KERNEL [PIECE]
	local daemon=()
	case $daemon_on in *" $1 "*) daemon=("$here/daemon.sh" "$build/otprofd" "$build/otprof-worker" "$build/otprof" "$build/programs/shares") ;; esac
	"$here/boot.sh" -k "$1" -t "${OTPROF_GUEST_SECONDS:-900}" -a "${2:+OTPROF_PIECES=$2}" "$here/bpf.sh" \
		"$probe" "$(command -v busybox)" ${daemon[@]+"${daemon[@]}"}
}

on_kernel() { # KERNEL [PIECE]
	if [ "$1" = native ]; then on_native; else on_guest "$@"; fi
}

# Facts, with the piece that they are of, and the kernel.
facts() { # KERNEL LOG
	awk -v kernel="$1" '
		sub(/^# piece: /, "") { piece = $0; next }
		match($0, /^(# first try: )?(ok|not ok|skip) - /) {
			print substr($0, 1, RLENGTH) piece " on " kernel ": " substr($0, RLENGTH + 1)
		}' "$2"
}

# Pieces of which a fact does not hold.
broken() { # LOG
	awk 'sub(/^# piece: /, "") { piece = $0 } /^not ok - / { print piece }' "$1" | sort -u
}

# A guest on a busy host gets few samples to count: the piece that fails is tried a second time, and says so.
try_twice() { # KERNEL; leaves all facts that count in $log
	local code piece
	on_kernel "$1" >"$log" 2>&1
	code=$?
	[ $code = 1 ] && [ -n "$(broken "$log")" ] || return $code
	code=0
	for piece in $(broken "$log"); do
		awk -v again="$piece" '
			/^# piece: / { piece = $3 }
			piece == again && /^not ok - / { print "# first try: " $0; next }
			piece == again && /^(ok|skip) - / { next }
			{ print }' "$log" >"$log.new"
		mv "$log.new" "$log"
		on_kernel "$1" "$piece" >"$log.again" 2>&1 || code=$?
		cat "$log.again" >>"$log"
		rm "$log.again"
	done
	return $code
}

run() { # KERNEL
	local code began=$SECONDS
	try_twice "$1"
	code=$?
	sed -n "s/^sampler on /# $1: /p" "$log"
	facts "$1" "$log"
	case $code in
	0) passed=$((passed + 1)) ;;
	77)
		skipped=$((skipped + 1))
		echo "skip - sampler on $1: $(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		grep -q '^not ok' "$log" || echo "not ok - sampler on $1: the guest ended with $code"
		{
			grep -aE '^not ok - ' -B 4 -A 1 "$log"
			grep -aE '^#|complained|cut here|BUG|Oops' -A 1 "$log" | grep -v '^# first try' | head -n 40
		} | sed -E 's/^(ok|not ok|skip) - /# &/'
		;;
	esac
	echo "# sampler on $1 took $((SECONDS - began)) s"
}

# Says its own facts: both samplers and what they are built from.
arm64() {
	local began=$SECONDS
	"$here/arm64.sh"
	case $? in 0) passed=$((passed + 1)) ;; 77) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
	echo "# arm64 took $((SECONDS - began)) s"
}

for kernel; do
	[ "$kernel" != arm64 ] || { arm64; continue; }
	run "$kernel"
done
echo "kernels: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
