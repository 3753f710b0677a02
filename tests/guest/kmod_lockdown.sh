#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest, as the last test: the module on a kernel that is locked down.
# No kernel takes a lockdown back, and none loads an unsigned module under it, so
# the module is loaded first. otprofd is asked where it was brought along.
bad=0
level=/sys/kernel/security/lockdown
conf=/tmp/lockdown.conf
log=/tmp/lockdown.log
fact() { # STATUS TEXT
	if [ "$1" = 0 ]; then echo "ok - $2"; else bad=1 && echo "not ok - $2"; fi
}

opens() { (exec 3<>/dev/otprof) 2>/dev/null; }

configure() { # MODE
	cat >$conf <<-CONF
		[sampler]
		mode = $1
		[limits]
		cpu_percent = 0
		[exporter files]
		endpoint = file:///var/tmp/locked
		[daemon]
		runtime_dir = /run/otprof
	CONF
}

module_is_refused() {
	configure kmod
	timeout 60 otprofd -f $conf >$log 2>&1 4>&-
	code=$?
	[ $code != 0 ] && [ $code != 124 ] && grep -q 'not kmod: kernel lockdown is set to confidentiality' $log
	fact $? "mode = kmod: otprofd says that lockdown forbids it, and how to boot"
}

auto_takes_perf() {
	configure auto
	otprofd -f $conf >$log 2>&1 4>&- &
	daemon=$!
	for _ in $(seq 90); do
		grep -q ': sampling (engine' $log && break
		kill -0 $daemon 2>/dev/null || break
		sleep 1
	done
	otprof status --runtime-dir /run/otprof --json >/tmp/lockdown.status 2>&1
	grep -q '"mode":"perf".*not kmod: kernel lockdown' /tmp/lockdown.status
	fact $? "mode = auto: perf events are taken, and status says why: $(grep -o '"mode":"[^"]*"' /tmp/lockdown.status)"
	kill -TERM $daemon
	wait $daemon
	fact $? "and otprofd stops cleanly"
}

[ -e $level ] || mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
if [ ! -w $level ]; then
	echo "skip - the module under lockdown: this kernel has none"
	exit 0
fi
insmod /otprof.ko || exit 1
echo integrity >$level
opens
fact $? "lockdown=integrity: the module may be opened"
# Not for otprofd's processes, of which one may outlive the monitor for a moment.
exec 4<>/dev/otprof
echo confidentiality >$level
! opens
fact $? "lockdown=confidentiality: the module refuses to be opened"
dmesg | grep -q 'Lockdown: .*perf is restricted'
fact $? "the kernel's log says so as well"
if command -v otprofd >/dev/null; then
	mkdir -p /run/otprof
	module_is_refused
	auto_takes_perf
fi
exec 4>&-
rmmod otprof
fact $? "lockdown=confidentiality: the module unloads"
[ $bad = 0 ] || sed 's/^/# /' $log
exit $bad
