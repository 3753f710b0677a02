#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: what a sample with exactly 4 KiB of stack costs in the kernel,
# by eBPF and by the module in turns, under one load. A line each time:
#   cost SOURCE SAMPLES NANOSECONDS LONGEST LIMIT   (of one sample; the longest since the source began, and its bound)
rt=/run/otprof
insmod /otprof.ko || exit 1

number() { # FILE NAME
	grep -o "\"$2\":[0-9]*" "$1" | head -n 1 | cut -d : -f 2
}

measure() { # SOURCE
	cat >/etc/otprof.conf <<CONF
[sampler]
mode = $1
frequency_hz = 499
stack_bytes = 4K
stack_max_bytes = 4K
[exporter files]
endpoint = file:///var/tmp/$1
[limits]
cpu_percent = 0
[daemon]
runtime_dir = $rt
CONF
	otprofd -f /etc/otprof.conf >/tmp/log 2>&1 &
	daemon=$!
	for _ in $(seq 60); do
		grep -q ': sampling (engine' /tmp/log && break
		sleep 1
	done
	# More than the CPUs can run until it is over: the load does not end before the second look.
	depth 100 14 200 >/dev/null &
	load=$!
	depth 100 14 200 >/dev/null &
	sleep 3
	otprof status --runtime-dir $rt --json >/tmp/first
	sleep 6
	otprof status --runtime-dir $rt --json >/tmp/second
	kill $load $!
	kill -TERM $daemon
	wait
	rm -rf "/var/tmp/$1"
	samples=$(($(number /tmp/second taken) - $(number /tmp/first taken)))
	ns=$(($(number /tmp/second kernel_ns) - $(number /tmp/first kernel_ns)))
	[ $samples -gt 100 ] || { sed 's/^/# /' /tmp/log; return 1; }
	echo "cost $1 $samples $((ns / samples)) $(number /tmp/second kernel_longest_ns) $(number /tmp/second kernel_limit_ns)"
}

for _ in 1 2 3; do
	measure bpf || exit 1
	measure kmod || exit 1
done
