#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In an arm64 guest: a program that knows its own shares, built with and
# without signed return addresses, is profiled by eBPF and by the module.
bad=0
rt=/run/otprof
log=/tmp/otprofd.log
regex='^shares[a-z-]*;_start;.*;main;run_rounds;timed;(descend;){20}work_(half|third|fifth)[; ]'

fact() { # STATUS TEXT
	if [ "$1" = 0 ]; then echo "ok - $2"; else bad=1 && echo "not ok - $2"; fi
}

samples() { awk '{ n += $NF } END { print n + 0 }'; }

start() { # SOURCE
	cat >/etc/otprof.conf <<CONF
[sampler]
mode = $1
frequency_hz = 97
[profile]
interval = 1s
[exporter files]
endpoint = file:///var/tmp/$1
[limits]
cpu_percent = 0
[daemon]
runtime_dir = $rt
CONF
	otprofd -f /etc/otprof.conf >$log 2>&1 &
	daemon=$!
	for _ in $(seq 90); do
		grep -q ': sampling (engine' $log && break
		kill -0 $daemon 2>/dev/null || break
		sleep 1
	done
	otprof status --runtime-dir $rt --json >/tmp/status 2>/dev/null
	grep -q "\"mode\":\"$1\"" /tmp/status
	fact $? "$1: otprofd starts and says its sampler"
}

stop() { # SOURCE
	kill -TERM $daemon
	wait $daemon
	fact $? "$1: it stops cleanly"
	last=$rt/last-status.json
	grep -q '"balanced":true' $last
	fact $? "$1: the ledger balances ($(grep -o '"taken":[0-9]*,"missed":[0-9]*' $last | head -n 1))"
	otprof convert -o /tmp/$1.collapsed /var/tmp/$1 >/dev/null 2>&1
	fact $? "$1: the files are readable"
}

load() {
	shares 8 >/tmp/shares.truth &
	one=$!
	shares-signed 8 >/tmp/shares-signed.truth &
	dd if=/dev/urandom of=/dev/null bs=64k count=1000 2>/dev/null
	wait $one $!
}

# A program's three functions: whole stacks, and shares as the program measured them, in per mille;
# four standard deviations of what was counted, and 20 for what the clock of an emulated machine does.
check() { # SOURCE PROGRAM
	grep -E "^$2;.*;work_(half|third|fifth)[; ]" /tmp/$1.collapsed >/tmp/stacks
	all=$(samples </tmp/stacks)
	good=$(grep -E "$regex" /tmp/stacks | samples)
	[ "$all" -gt 200 ] && [ "$all" = "$good" ]
	fact $? "$1: stacks of $2 are whole and named ($good of $all samples)"
	[ "$all" = "$good" ] || grep -vE "$regex" /tmp/stacks | head -n 3 | sed 's/^/# /'
	sum=$(sed 's/.*"work_half": \([0-9]*\), "work_third": \([0-9]*\), "work_fifth": \([0-9]*\).*/\1 \2 \3/' /tmp/$2.truth)
	said='' off=0
	for part in half third fifth; do
		is=$(($(grep -E ";work_${part}[; ]" /tmp/stacks | samples) * 1000 / (all > 0 ? all : 1)))
		# shellcheck disable=SC2046,SC2086
		set -- "$1" "$2" $(echo $sum | awk -v part=$part -v n="$all" '
			function root(x, r, i) { # busybox has none
				for (r = 1; i < 20; i++)
					r = (r + x / r) / 2
				return r
			}
			{
				p = (part == "half" ? $1 : part == "third" ? $2 : $3) / ($1 + $2 + $3)
				print int(1000 * p), int(20 + 4000 * root(p * (1 - p) / (n + 1)))
			}')
		said="$said $part $is/$3"
		[ $((is > $3 ? is - $3 : $3 - is)) -le "$4" ] || off=1
	done
	fact $off "$1: shares of $2 are what it measured itself (per mille,$said)"
}

# A long system call: its stack is the kernel's from the entry to where it was interrupted, with no
# timer and no sampler on top of it.
check_kernel() { # SOURCE
	ours='hrtimer_(interrupt|run_queues)|arch_timer_handler|perf_swevent|perf_event_overflow|on_tick|otprof|bpf_'
	grep -E 'urandom_read' /tmp/$1.collapsed >/tmp/stacks
	all=$(samples </tmp/stacks)
	good=$(grep -E ';(el0t_64_sync|el0_sync)[^;]*;.*;el0_svc;.*;urandom_read' /tmp/stacks | grep -vcE "$ours")
	[ "$all" -gt 20 ] && [ "$good" = "$(wc -l </tmp/stacks)" ]
	fact $? "$1: kernel stacks lead from the system call to where it was interrupted ($all samples)"
	[ $bad = 0 ] || grep -E "$ours" /tmp/stacks | head -n 2 | sed 's/^/# /'
}

# Known registers and a known stack, as a record says them.
check_records() { # SOURCE
	OTPROF_SOURCE=$1 probe 'registers' 'short read' 'frame pointers' 'kernel stack' >/tmp/probe
	[ $? = 0 ] || bad=1
	sed -nE "s/^(ok|not ok|skip) - /\\1 - $1: /p; /^#/p" /tmp/probe
}

uname -rm | sed 's/^/# kernel /'
insmod /otprof.ko
fact $? "the module loads"
for source in bpf kmod; do
	start $source
	load
	stop $source
	for program in shares shares-signed; do
		check $source $program
	done
	check_kernel $source
	check_records $source
	[ $bad = 0 ] || sed 's/^/# /' $log
done
rmmod otprof
fact $? "the module unloads"
exit $bad
