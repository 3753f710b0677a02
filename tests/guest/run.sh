#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sampler's own test on every kernel that otprof promises, in QEMU, and on
# the running one where that is allowed.
#
#   run.sh [KERNEL...]      5.10 6.1 6.12 7.x; "native" for the running kernel
#
# OTPROF_PROBE names the test program (default $BUILD/probe). A kernel that
# cannot be had is skipped with its reason. Exit code 1 where one failed, 77
# where none ran.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
probe=${OTPROF_PROBE:-${BUILD:-$here/../../build}/probe}
[ $# -gt 0 ] || set -- native 5.10 6.1 6.12 7.x
passed=0 failed=0 skipped=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_one() {
	if [ "$1" != native ]; then
		"$here/boot.sh" -k "$1" -t "${OTPROF_GUEST_SECONDS:-300}" "$here/probe.sh" "$probe" "$(command -v busybox)"
	elif [ "$(id -u)" = 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
		"$probe"
	else
		echo "the running kernel: needs root and BTF"
		return 77
	fi
}

for kernel; do
	run_one "$kernel" >"$log" 2>&1
	code=$?
	sed -n "s/^sampler on /# $kernel: /p" "$log"
	sed -nE "s/^(ok|not ok|skip) - /\\1 - sampler on $kernel: /p" "$log"
	case $code in
	0) passed=$((passed + 1)) ;;
	77)
		skipped=$((skipped + 1))
		echo "skip - sampler on $kernel: $(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		grep -q '^not ok' "$log" || echo "not ok - sampler on $kernel: the guest ended with $code"
		grep -aE '^#|complained|cut here|BUG|Oops' -A 1 "$log" | head -n 40
		;;
	esac
done
echo "kernels: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
