#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the module under everything that may happen to it, while
# programs run. OTPROF_LOADS loads and unloads (100), OTPROF_SHAKE_MS for each
# of the other actions (3000); both come by the kernel's command line.
loads=${OTPROF_LOADS:-100}
ms=${OTPROF_SHAKE_MS:-3000}
bad=0

if mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null && grep -q kmemleak=on /proc/cmdline; then
	leaks=/sys/kernel/debug/kmemleak
fi

insmod /otprof.ko || exit 1
# Before there is any load: it measures how much of a CPU the module takes.
kmod_stress rest 2000 || bad=1

# The load: programs that compute, fork, execute and read, until the file is there.
again() {
	until [ -e /tmp/enough ]; do "$@" >/dev/null 2>&1 || usleep 100000; done
}
again shares 5 &
again forkstorm-static 40 5 &
again hostile-static 5 &
again dd if=/dev/urandom of=/dev/null bs=4096 count=2000 &

kmod_stress loads "$loads" owners "$((ms / 40))" overflow "$ms" plans "$ms" walks "$ms" hotplug "$ms" \
	calls "$ms" maps "$ms" pressure "$ms" || bad=1
# With nobody else who allocates: that would be one of the allocations that fail.
kmod_stress faults "$((ms < 1000 ? 7 : 1))" || bad=1
rmmod otprof || { echo "not ok - the module unloads"; bad=1; }

# Whoever waits for a scan can be told to stop waiting, and the scan with him.
scan() {
	timeout 300 sh -c "echo scan >$leaks"
}

# The scan has the machine to itself: it looks at every page, with a lock for every object.
if [ -n "$leaks" ] && [ -e "$leaks" ]; then
	touch /tmp/enough
	sleep 6 # an object is a leak only when it is older than 5 s
	if ! scan || ! scan; then
		echo "skip - nothing leaks: the kernel's scan takes more than 300 s here"
	elif grep -A 20 '\[otprof\]' "$leaks" >/tmp/leaks; then
		bad=1
		echo "not ok - nothing leaks"
		head -n 40 /tmp/leaks
	else
		echo "ok - nothing leaks"
	fi
fi
exit $bad
