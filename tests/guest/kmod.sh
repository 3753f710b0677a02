#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the sampler's own test by the module, the whole daemon where it
# was brought along, then what shakes the module, and at last a lockdown.
# OTPROF_LOADS and OTPROF_SHAKE_MS say how much; they come by the kernel's
# command line. OTPROF_SHAKE_ONLY=yes leaves the first two out.
bad=0
fact() { # STATUS TEXT
	if [ "$1" = 0 ]; then echo "ok - $2"; else bad=1 && echo "not ok - $2"; fi
}

OTPROF_SOURCE=kmod
export OTPROF_SOURCE
if [ "${OTPROF_SHAKE_ONLY:-no}" = no ]; then
	probe "missing capability" | grep -q 'not loaded: install the package otprof-dkms and run .modprobe otprof'
	fact $? "a module that is not loaded is named, with the package and the command"
	insmod /otprof.ko
	fact $? "it loads"
	probe "$@" || bad=1
	rmmod otprof
	fact $? "it unloads"
fi
if [ -e /otprof-old.ko ]; then
	! insmod /otprof-old.ko 2>/dev/null && dmesg | grep -q 'otprof: needs Linux 4.4 or later, this is 4.3'
	fact $? "on a kernel before 4.4 loading is refused in words"
fi
if command -v otprofd >/dev/null; then
	kmod_daemon.sh || bad=1
fi
/bin/kmod_stress.sh || bad=1
kmod_lockdown.sh || bad=1
exit $bad
