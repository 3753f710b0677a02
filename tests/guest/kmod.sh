#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the sampler's own test by the module; then loading and
# unloading, quietly and under a sampler that is killed.
bad=0
fact() { # STATUS TEXT
	if [ "$1" = 0 ]; then echo "ok - $2"; else bad=1 && echo "not ok - $2"; fi
}

OTPROF_SOURCE=kmod
export OTPROF_SOURCE
probe "missing capability" | grep -q 'not loaded: install the package otprof-dkms and run .modprobe otprof'
fact $? "a module that is not loaded is named, with the package and the command"

insmod /otprof.ko
fact $? "it loads"
probe "$@" || bad=1

rmmod otprof
fact $? "it unloads"
ok=0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	insmod /otprof.ko || ok=1
	probe "samples follow" >/dev/null &
	pid=$!
	usleep $((i * 20000))
	kill -9 $pid
	wait $pid 2>/dev/null
	# Its children were spinning; whoever held the device is gone.
	killall -9 probe 2>/dev/null
	tries=0
	until rmmod otprof 2>/dev/null || [ $tries = 10 ]; do
		tries=$((tries + 1))
		usleep 50000
	done
	[ ! -e /sys/module/otprof ] || ok=1
done
fact $ok "20 owners killed at different moments leave nothing that keeps it loaded"
exit $bad
