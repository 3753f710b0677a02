#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the sampler's own test by eBPF, a part of it by perf, and the
# whole daemon, in one boot. OTPROF_PIECES names one of them; it comes by the kernel's command line.
bad=0

probe_perf() {
	OTPROF_SOURCE=perf probe softirq
}

for piece in ${OTPROF_PIECES:-sampler perf daemon}; do
	case $piece in
	sampler) command=probe ;;
	perf) command=probe_perf ;;
	daemon) command=daemon.sh ;;
	esac
	command -v $command >/dev/null || continue
	echo "# piece: $piece"
	$command || bad=1
done
exit $bad
