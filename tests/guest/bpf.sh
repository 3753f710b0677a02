#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the sampler's own test by eBPF, and the whole daemon, in one
# boot. OTPROF_PIECES names one of them; it comes by the kernel's command line.
bad=0
for piece in ${OTPROF_PIECES:-sampler daemon}; do
	case $piece in
	sampler) command=probe ;;
	daemon) command=daemon.sh ;;
	esac
	command -v $command >/dev/null || continue
	echo "# piece: $piece"
	$command || bad=1
done
exit $bad
