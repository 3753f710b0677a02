#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the whole of otprofd on a bare system, from its start to a
# ledger that balances. Each fact is a line; the exit code is 1 if one is wrong.
#
# OTPROF_SOURCE=kmod: with the module, which auto has to find where there is no BTF.
bad=0
source=${OTPROF_SOURCE:-bpf}
rt=/run/otprof
out=/var/tmp/profiles
log=/tmp/otprofd.log
conf=/etc/otprof.conf
cpu1=/sys/devices/system/cpu/cpu1/online

fact() { # STATUS TEXT
	if [ "$1" = 0 ]; then echo "ok - $2"; else bad=1 && echo "not ok - $2"; fi
}

mkdir -p "$rt"
cat >$conf <<CONF
[sampler]
mode = $([ $source = bpf ] && echo bpf || echo auto)
frequency_hz = 97
[profile]
interval = 1s
[exporter files]
endpoint = file://$out
[limits]
cpu_percent = 0
[daemon]
runtime_dir = $rt
CONF

uname -r | sed 's/^/# kernel /'
sed 's/^/# kernel.perf_event_paranoid = /' /proc/sys/kernel/perf_event_paranoid

# What is missing is said, and nothing is left to run.
mount -t tmpfs none /sys/kernel/btf
if [ $source = bpf ]; then
	timeout 60 otprofd -f $conf >$log 2>&1
	code=$?
	[ $code != 0 ] && [ $code != 143 ] && grep -q 'no BTF: /sys/kernel/btf/vmlinux cannot be read' $log
	fact $? "no BTF: refused with a line that names it: $(grep -m 1 BTF $log)"
	umount /sys/kernel/btf
fi

otprofd -f $conf >$log 2>&1 &
daemon=$!
status() { otprof status --runtime-dir $rt --json 2>/dev/null; }
# The log is asked, not the daemon: under emulation each question takes time from what it waits for.
for _ in $(seq 90); do
	grep -q ': sampling (engine' $log && break
	kill -0 $daemon 2>/dev/null || break
	sleep 1
done
status >/tmp/status
grep -q "\"mode\":\"$source\"" /tmp/status
[ $? = 0 ] && grep -q ': sampling (engine' $log
fact $? "otprofd starts and says its sampler: $(grep -o '"mode":"[^"]*","why":"[^"]*"' /tmp/status)"

taken_on() { # CPU
	status | tr '{' '\n' | sed -n "s/^\"cpu\":$1,.*\"taken\":\([0-9]*\).*/\1/p"
}

# A CPU goes and comes back while a program runs on each.
cpu_comes_and_goes() {
	taskset 2 shares 12 >/tmp/truth.1 &
	sleep 4
	echo 0 >$cpu1
	grep -q 0 $cpu1
	fact $? "a CPU goes offline under it"
	sleep 2
	gone=$(taken_on 1)
	echo 1 >$cpu1
	grep -q 1 $cpu1
	fact $? "and comes back"
	sleep 1
	taskset 2 shares 4 >/tmp/truth.2 &
	sleep 5
	back=$(taken_on 1)
	[ "${back:-0}" -gt "${gone:-0}" ] && [ "${gone:-0}" -gt 0 ]
	fact $? "the CPU that came back is sampled again ($gone samples before, $back after)"
}

shares 12 >/tmp/truth.0 &
program=$!
if [ -w $cpu1 ]; then
	cpu_comes_and_goes
else
	echo "skip - a CPU goes and comes back: there is only one"
fi
wait $program

# A stack of the program that was in one of its three functions, the kernel's frames above it or not.
stacks() {
	otprof convert -o /tmp/out.collapsed $out >/tmp/convert.log 2>&1
	code=$?
	grep -E ';work_(half|third|fifth)[; ]' /tmp/out.collapsed >/tmp/stacks
	return $code
}
samples() { awk '{ n += $NF } END { print n + 0 }'; }
# Before the program's index is made, under emulation later than samples wait, its names are numbers.
for n in $(seq 3 10); do
	stacks
	[ "$(samples </tmp/stacks)" -gt 300 ] && break
	shares 6 >/tmp/truth.$n
done

kill -TERM $daemon
wait $daemon
fact $? "it stops cleanly at SIGTERM"
last=$rt/last-status.json
grep -q '"balanced":true' $last
fact $? "the ledger balances after the stop ($(grep -o '"taken":[0-9]*,"missed":[0-9]*' $last | head -n 1))"
grep -q '"in_flight":0' $last && ! grep -q '"in_flight":[1-9]' $last
fact $? "nothing is in flight after the stop"

stacks
fact $? "the files are readable: $(find $out -name '*.otlp' | wc -l) requests"
whole='^shares;_start;.*;main;run_rounds;timed;(descend;){20}work_(half|third|fifth)[; ]'
all=$(samples </tmp/stacks)
good=$(grep -E "$whole" /tmp/stacks | samples)
[ "$all" -gt 300 ] && [ "$all" = "$good" ]
fact $? "stacks of a program are whole and named ($good of $all samples)"
[ "$all" = "$good" ] || grep -vE "$whole" /tmp/stacks | head -n 3 | sed 's/^/# /'

# In hundredths of the three; what the program measured itself is the truth.
part() { # FUNCTION FILE: lines "FUNCTION NUMBER"
	awk -v f="$1" '{ all += $2 } $1 == f { mine += $2 } END { printf "%d", all ? 100 * mine / all + 0.5 : -100 }' "$2"
}
cat /tmp/truth.* | grep -o '"work_[a-z]*": [0-9]*' | tr -d '":' >/tmp/truth
sed 's/^.*;\(work_[a-z]*\)[; ].*[^0-9]\([0-9]*\)$/\1 \2/; s/^.*;\(work_[a-z]*\) \([0-9]*\)$/\1 \2/' /tmp/stacks >/tmp/seen
for f in work_half work_third work_fifth; do
	true=$(part $f /tmp/truth) seen=$(part $f /tmp/seen)
	[ $((true - seen)) -le 6 ] && [ $((seen - true)) -le 6 ]
	fact $? "$f has its share ($seen %, by its own account $true %)"
done

[ $bad = 0 ] || sed 's/^/# /' $log
exit $bad
