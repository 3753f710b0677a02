#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sampler's own test on every kernel that otprof promises, in QEMU, and on
# the running one where that is allowed; then the whole daemon on the kernels
# that are furthest from the one it is made on.
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

boot() { # KERNEL SCRIPT FILE...
	local kernel=$1
	shift
	"$here/boot.sh" -k "$kernel" -t "${OTPROF_GUEST_SECONDS:-900}" "$@"
}

sampler() {
	if [ "$1" != native ]; then
		boot "$1" "$here/probe.sh" "$probe" "$(command -v busybox)"
	elif [ "$(id -u)" = 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
		"$probe"
	else
		echo "the running kernel: needs root and BTF"
		return 77
	fi
}

daemon() {
	boot "$1" "$here/daemon.sh" "$build/otprofd" "$build/otprof" "$build/programs/shares"
}

# A guest on a busy host gets few samples to count: what fails is tried a second time, and says so.
run() { # WHAT KERNEL
	local code what="$1 on $2" began=$SECONDS
	"$1" "$2" >"$log" 2>&1
	code=$?
	if [ $code = 1 ]; then
		sed -nE "s/^(not ok) - /# first try: \\1 - $what: /p" "$log"
		"$1" "$2" >"$log" 2>&1
		code=$?
	fi
	sed -n "s/^sampler on /# $2: /p" "$log"
	sed -nE "s/^(ok|not ok|skip) - /\\1 - $what: /p" "$log"
	case $code in
	0) passed=$((passed + 1)) ;;
	77)
		skipped=$((skipped + 1))
		echo "skip - $what: $(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		grep -q '^not ok' "$log" || echo "not ok - $what: the guest ended with $code"
		grep -aE '^#|complained|cut here|BUG|Oops' -A 1 "$log" | sed -E 's/^(ok|not ok|skip) - /# &/' | head -n 40
		;;
	esac
	echo "# $what took $((SECONDS - began)) s"
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
	run sampler "$kernel"
	case $daemon_on in *" $kernel "*) run daemon "$kernel" ;; esac
done
echo "kernels: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
