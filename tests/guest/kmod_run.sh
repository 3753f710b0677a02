#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sampler's own test with the kernel module instead of BPF: builds it
# against each kernel's headers, W=1 and no warning allowed, and boots.
#
#   kmod_run.sh [KERNEL...]     5.10 6.1 6.12 7.x
#
# Not part of `make check`. KMOD_CC names the compiler; newer kernels want
# newer ones than the host may have. 77 where nothing could be run.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(mkdir -p "${BUILD:-$top/build}" && cd "${BUILD:-$top/build}" && pwd)
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 7.x
passed=0 failed=0 skipped=0

# KERNEL: leaves otprof.ko in $build/kmod-KERNEL. 77: no headers.
make_module() {
	local headers dir=$build/kmod-$1
	headers=$("$here/headers.sh" "$1") || return 77
	rm -rf "$dir" && mkdir -p "$dir" && cp -r "$top/Kbuild" "$top/kmod" "$dir/"
	make -C "$headers" M="$dir" CC="${KMOD_CC:-gcc}" W=1 CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$dir/log" 2>&1 ||
		{ grep -m 5 -iE 'error|not found' "$dir/log"; return 1; }
	# Only what our own files are told counts.
	! grep -E '(^|/)kmod/[^:]*:[0-9]+:.*warning' "$dir/log"
}

one() {
	local log=$build/kmod-$1.log code
	make_module "$1"
	code=$?
	[ $code != 77 ] || { echo "skip - module on $1: no headers"; return 77; }
	[ $code = 0 ] || { echo "not ok - module on $1: builds without a warning"; return 1; }
	echo "ok - module on $1: builds without a warning"
	"$here/boot.sh" -k "$1" -t "${OTPROF_GUEST_SECONDS:-400}" "$here/kmod.sh" "${OTPROF_PROBE:-$build/probe}" \
		"$(command -v busybox)" "$build/kmod-$1/otprof.ko=/otprof.ko" >"$log" 2>&1
	code=$?
	sed -nE "s/^(ok|not ok|skip) - /\\1 - module on $1: /p" "$log"
	[ $code = 0 ] || { grep -q '^not ok' "$log" || echo "not ok - module on $1: the guest ended with $code"; tail -n 30 "$log"; }
	return $code
}

for kernel; do
	one "$kernel"
	case $? in 0) passed=$((passed + 1)) ;; 77) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
done
echo "kernels: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
