#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernel module on real kernels: built against each one's headers, W=1 and
# no warning allowed; the sampler's own test and the whole daemon by it; loads,
# unloads, killed owners, fuzzers and the rest of kmod_stress.sh.
#
#   kmod_run.sh [KERNEL...]     5.10 6.1 6.12 7.x 6.1-rt kasan kcsan, or /DIRECTORY (old_kernel.sh)
#
# kasan and kcsan are run where debug_kernel.sh has made them. One kernel
# (OTPROF_SHAKEN, 6.1) gets OTPROF_LOADS (100) loads and OTPROF_SHAKE_MS (3000)
# of each of the rest, the others a tenth. OTPROF_KMEMLEAK=yes: kasan looks for
# leaks too, which makes it slower still. Two guests run at a time, each of
# which uses one CPU (OTPROF_GUEST_JOBS). 77 where nothing could be run.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(mkdir -p "${BUILD:-$top/build}" && cd "${BUILD:-$top/build}" && pwd)
shaken=${OTPROF_SHAKEN:-6.1} loads=${OTPROF_LOADS:-100} ms=${OTPROF_SHAKE_MS:-3000} jobs=${OTPROF_GUEST_JOBS:-2}
[ $# -gt 0 ] || set -- 6.1 6.1-rt 5.10 7.x 6.12 kasan kcsan

name_of() { # KERNEL: as a file's name
	basename "$1"
}

how_much() { # KERNEL: for the kernel's command line
	case " $shaken " in
	*" $1 "*) echo "OTPROF_LOADS=$loads OTPROF_SHAKE_MS=$ms" ;;
	*) echo "OTPROF_LOADS=$((loads / 10)) OTPROF_SHAKE_MS=$((ms / 10))" ;;
	esac
	[ "${OTPROF_KMEMLEAK:-no}" = no ] || echo "kmemleak=on"
	# These are slow, and the sampler's test wants samples: it runs elsewhere.
	case $1 in
	kasan | kcsan) echo "OTPROF_SHAKE_ONLY=yes rcupdate.rcu_cpu_stall_timeout=120 sysctl.kernel.hung_task_timeout_secs=240" ;;
	esac
}

# A module whose kernel says that it is Linux 4.3.
old_module() { # KERNEL
	"$here/module.sh" "$1" "$build/kmod-old" "-include $top/tests/kmod/old_release.h"
}

boot() { # KERNEL MODULE
	local memory=1024 more=()
	case $1 in
	kasan) memory=2048 ;;
	kcsan) ;;
	*) more=("$here/kmod_daemon.sh" "$here/daemon.sh" "$build/otprofd" "$build/otprof-worker" "$build/otprof") ;;
	esac
	case " $shaken " in
	*" $1 "*) ! old_module "$1" || more+=("$build/kmod-old/otprof.ko=/otprof-old.ko") ;;
	esac
	"$here/boot.sh" -k "$1" -m $memory -t "${OTPROF_GUEST_SECONDS:-600}" -a "loglevel=5 $(how_much "$1" | tr '\n' ' ')" \
		"$here/kmod.sh" "${OTPROF_PROBE:-$build/probe}" "$(command -v busybox)" "$here/kmod_stress.sh" "$here/kmod_lockdown.sh" \
		"$build/kmod_stress" "$build/programs/shares" "$build/programs/forkstorm-static" \
		"$build/programs/hostile-static" ${more[@]+"${more[@]}"} "$2=/otprof.ko"
}

# Prints what it found; 0, 1 or 77.
one() { # KERNEL
	local name dir log code
	name=$(name_of "$1")
	dir=$build/kmod-$name
	log=$build/kmod-$name.log
	"$here/module.sh" "$1" "$dir" >"$log" 2>&1
	code=$?
	if [ $code = 77 ]; then
		echo "skip - module on $name: $(tail -n 1 "$log")"
		return 77
	elif [ $code != 0 ]; then
		echo "not ok - module on $name: builds without a warning"
		sed 's/^/# /' "$log"
		return 1
	fi
	echo "ok - module on $name: builds without a warning"
	boot "$1" "$dir/otprof.ko" >"$log" 2>&1
	code=$?
	# A guest on a busy host gets few ticks to count: it is booted a second time where a fact does not hold, and says so.
	if [ $code != 0 ] && grep -q '^not ok' "$log"; then
		sed -nE "s/^not ok - /# first try: &module on $name: /p" "$log"
		boot "$1" "$dir/otprof.ko" >"$log" 2>&1
		code=$?
	fi
	sed -nE "s/^(ok|not ok|skip) - /\\1 - module on $name: /p" "$log"
	[ $code = 0 ] && return 0
	grep -q '^not ok' "$log" || echo "not ok - module on $name: the guest ended with $code"
	tail -n 30 "$log" | sed -E 's/^/# /'
	return $code
}

# Each one's lines appear together.
run() { # KERNEL
	local out
	out=$build/kmod-$(name_of "$1").out
	local began=$SECONDS code
	one "$1" >"$out"
	code=$?
	echo "# module on $1 took $((SECONDS - began)) s" >>"$out"
	flock "$build/kmod.lock" cat "$out"
	echo $code >"$out.code"
}

for kernel; do
	rm -f "$build/kmod-$(name_of "$kernel").out.code"
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
	run "$kernel" &
done
wait
passed=0 failed=0 skipped=0
for kernel; do
	case $(cat "$build/kmod-$(name_of "$kernel").out.code") in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
done
echo "kernels: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
