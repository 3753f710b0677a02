#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the end-to-end tests by the module, then beside eBPF and perf.
# OTPROF_E2E names tests, of the module or, after its name and a colon, of
# another source; it comes by the kernel's command line, with points for blanks.
export PATH=/otprof/bin:$PATH BUILD=/otprof/build E2E_BRIEF=1 E2E_SLOW=1 KILLS=2 OTPROF_AGREE="kmod bpf perf" OTPROF_AGREE_HZ=97
chosen=$(echo "${OTPROF_E2E:-model.views.shares.lockstep.short.selection.ledger.errors.record.agree}" | tr . ' ')
bad=0
insmod /otprof.ko || exit 1
cd /otprof/tests/e2e || exit 1

# What fails is tried once more: a guest on a busy host gets few samples to count.
run() { # SOURCE TEST
	began=$(date +%s)
	for try in first second; do
		OTPROF_SOURCE=$1 timeout 300 python3 -B "$2.py" >/tmp/out 2>&1
		code=$?
		[ $code != 0 ] && [ $code != 77 ] && [ $try = first ] || break
		sed -n 's/^not ok - /# first try: &/p' /tmp/out
	done
	if [ $code != 0 ] && [ $code != 77 ]; then
		bad=1
		grep -q '^not ok' /tmp/out || echo "not ok - $2 ended with $code"
		grep -v '^\(ok\|not ok\|skip\) - ' /tmp/out | tail -n 30
	fi
	sed -nE "s/^(ok|not ok|skip) - /\\1 - $1: /p" /tmp/out
	echo "# $1 $2 took $(($(date +%s) - began)) s"
}

for test in $chosen; do
	case $test in
	*:*) run "${test%%:*}" "${test#*:}" ;;
	*) run kmod "$test" ;;
	esac
done
if [ -z "${OTPROF_E2E:-}" ]; then
	run bpf shares
	echo 3 >/proc/sys/kernel/perf_event_paranoid
	run bpf ordinary
fi
rmmod otprof || { echo "not ok - the module unloads when all is over"; bad=1; }
exit $bad
