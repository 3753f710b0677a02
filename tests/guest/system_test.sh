#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In a whole Debian: what an operator does with the packages, in the order in
# which it happens to one, over two boots. Each fact is a line.
#
# Boot 1, previous kernel: install, one line of configuration, enable; reload, restart, kills.
# The module without headers; then a second kernel with its headers, for which DKMS builds it: one
# build, that takes minutes under emulation, says both that headers may come later and kernels, too.
# Boot 2, that kernel: it came back, with the module; reload, restart, kills; upgrade; removal, purge.
# Debian 11: one boot; by the module and by BPF, as a service.
bad=0
conf=/etc/otprof.conf
sink=/var/lib/sink
state=/var/lib/otprof
whole='^[^;]*;_start;.*;main;run_rounds;timed;(descend;){20}work_(half|third|fifth)[; ]'
export DEBIAN_FRONTEND=noninteractive
fact() { # STATUS TEXT [FILE]
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		bad=1
		echo "not ok - $2"
		[ -z "$3" ] || tail -n 25 "$3" | sed 's/^/# /'
	fi
}

clock() { echo "# time $1: $(cut -d ' ' -f 1 /proc/uptime) s after the start of boot"; }

install() { # FILE...
	apt-get install -y -q "$@" >/tmp/apt.log 2>&1
}

status() { otprof status --json 2>/dev/null; }
pid_of() { status | sed -n "s/.*\"$1\":{\"pid\":\\([0-9]*\\).*/\\1/p"; }
main_pid() { systemctl show -p MainPID --value otprofd; }
# From here on the journal is asked.
mark() { since=$(date '+%F %T'); }
journal() { journalctl -q --no-pager -o cat -u otprofd --since "$since" >/tmp/journal; }
said() { grep -qE "$1" /tmp/journal; }

# Waits for as long as COMMAND says no, a minute and a half at most.
until_true() {
	for _ in $(seq 180); do
		"$@" && return 0
		sleep 0.5
	done
	return 1
}

# Its status names the sampler before the workers are up; the unit is active when they are.
is_sampling() { systemctl -q is-active otprofd && status | grep -q "\"mode\":\"$1\""; }
are_gone() { # TWO PIDS
	[ $# = 2 ] && [ ! -d "/proc/$1" ] && [ ! -d "/proc/$2" ]
}
no_more() { [ "$(main_pid)" != "$1" ]; }
other_worker() { now=$(pid_of "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }

named_since() { # samples with whole names in what came since the mark
	find $sink -name '*.otlp' -newer $sink/mark >/tmp/new
	[ -s /tmp/new ] || return 1
	# shellcheck disable=SC2046 # names without blanks
	otprof convert -o /tmp/new.collapsed $(cat /tmp/new) >/tmp/convert.log 2>&1 || return 1
	named=$(grep -E "$whole" /tmp/new.collapsed | awk '{ n += $NF } END { print n + 0 }')
	[ "$named" -ge 10 ]
}

profiles() { # WHEN
	touch $sink/mark
	/files/shares 3 >/dev/null
	named=
	for _ in $(seq 40); do
		named_since && break
		sleep 1
	done
	[ "${named:-0}" -ge 10 ]
	fact $? "$1: profiles arrive, whole stacks with right names (${named:-no} samples)" /tmp/convert.log
	[ "${named:-0}" -ge 10 ] || cut -d ';' -f 1-3 /tmp/new.collapsed | sort | uniq -c | sort -rn | head -n 12 | sed 's/^/# /'
}

begin() {
	mkdir -p $sink
	systemd-run -q --unit=sink python3 /files/sink.py $sink --port 4318
	until_true sh -c "grep -q :10DE /proc/net/tcp"
	echo "# kernel $(uname -r), perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
}

sampled_without_complaint() { # SAMPLER PREFIX: since the last mark
	journal
	said "sampler $1" && said 'sampling \(engine'
	fact $? "$2the journal says which sampler runs" /tmp/journal
	! said 'not exist|cannot|refuse|denied|not permitted|not readable'
	fact $? "$2the unit's hardening is in nobody's way" /tmp/journal
}

exposed() {
	systemd-analyze security --no-pager otprofd >/tmp/exposure 2>&1
	exposure=$(sed -n 's/.*exposure level for otprofd.service: \([0-9.]*\).*/\1/p' /tmp/exposure)
	[ -n "$exposure" ] && [ "$(echo "$exposure" | tr -d .)" -le 35 ]
	fact $? "systemd-analyze security otprofd: exposure ${exposure:-unknown}, 3.5 at most" /tmp/exposure
	grep -a '✗' /tmp/exposure | sed 's/^/# /'
}

reads_in_kernel() {
	find $sink -name '*.otlp' -newer $sink/mark >/tmp/new
	[ -s /tmp/new ] || return 1
	# shellcheck disable=SC2046 # names without blanks
	otprof convert -o /tmp/new.collapsed $(cat /tmp/new) >/tmp/convert.log 2>&1 && grep -q 'vfs_read' /tmp/new.collapsed
}

# systemd opens their list for otprofd, which could not.
kernel_names() { # SAMPLER
	touch $sink/mark
	timeout 3 dd if=/dev/urandom of=/dev/null bs=64k 2>/dev/null
	until_true reads_in_kernel
	fact $? "$1: kernel functions have names" /tmp/convert.log
}

installed_first() {
	mark
	install /files/this/otprof_*.deb
	fact $? "apt installs otprof" /tmp/apt.log
	getent passwd otprof-engine >/tmp/users && getent passwd otprof-net >>/tmp/users
	fact $? "both workers have a user" /tmp/users
	[ "$(stat -c %a:%U $state)" = 750:root ] && [ "$(stat -c %a:%U /etc/otprof.conf.d)" = 755:root ]
	fact $? "its directories are there, with their modes"
	[ "$(systemctl is-enabled otprofd)" = disabled ] && [ "$(systemctl is-active otprofd)" = inactive ]
	fact $? "nothing runs before it is told where to send"
	clock "installed"
	sed -i -e 's/^#\(\[exporter collector\]\)/\1/' -e 's|^#* *endpoint = .*|endpoint = http://127.0.0.1:4318|' $conf
	otprofd -t >/tmp/test.log 2>&1
	fact $? "one line of configuration is good" /tmp/test.log
	# Emulation makes all of it dear: what a host would call too much is not meant. And nobody likes to wait.
	printf '[limits]\ncpu_percent = 100\n[profile]\ninterval = 1s\n' >/etc/otprof.conf.d/emulated.conf
	systemctl enable -q --now otprofd
	fact $? "systemctl enable --now otprofd" /tmp/apt.log
	until_true is_sampling bpf
	systemctl show -p StatusText --value otprofd | tee /tmp/status | grep -q 'Hz'
	fact $? "systemctl status says what it does: $(cat /tmp/status)"
	sampled_without_complaint bpf ""
	exposed
	profiles "after the installation"
	kernel_names bpf
	clock "first profiles"
}

set_rate() { # HZ
	sed -i "s/^#* *frequency_hz = .*/frequency_hz = $1/" $conf
}

reloaded() { # SAMPLER HZ
	mark
	before=$(main_pid)
	set_rate "$2"
	systemctl reload otprofd
	fact $? "$1: systemctl reload"
	until_true sh -c "otprof status --json | grep -q '\"frequency_hz\":$2'" && [ "$(main_pid)" = "$before" ]
	fact $? "$1: reload changes the rate of the running daemon"
	set_rate many
	! systemctl reload otprofd 2>/dev/null && [ "$(main_pid)" = "$before" ] && is_sampling "$1"
	fact $? "$1: reload of a wrong file fails, and it goes on"
	journal
	said "otprof.conf:[0-9]+: sampler.frequency_hz: "
	fact $? "$1: the journal says what is wrong with the file" /tmp/journal
	set_rate "$2"
	profiles "$1: after reload"
	systemctl restart otprofd
	fact $? "$1: systemctl restart"
	until_true is_sampling "$1" && [ "$(main_pid)" != "$before" ]
	profiles "$1: after restart"
	clock "reloaded and restarted, $1"
}

killed() { # SAMPLER
	mark
	for worker in engine net; do
		before=$(pid_of $worker)
		kill -9 "$before"
		until_true other_worker $worker "$before"
		fact $? "$1: kill -9 of $worker: another one takes its place"
		profiles "$1: after kill -9 of $worker"
		journal
		said "$worker .*$before" && said "$worker is back"
		fact $? "$1: the journal says that $worker was killed, and is back" /tmp/journal
	done
	before=$(main_pid)
	workers="$(pid_of engine) $(pid_of net)"
	kill -9 "$before"
	until_true no_more "$before"
	until_true is_sampling "$1"
	fact $? "$1: kill -9 of the monitor: systemd starts it again"
	# shellcheck disable=SC2086 # two numbers
	are_gone $workers
	fact $? "$1: no worker outlives its monitor"
	profiles "$1: after kill -9 of the monitor"
	journal
	said 'code=killed, status=9/KILL' && said 'restart job'
	fact $? "$1: the journal says that the monitor was killed and started again" /tmp/journal
	clock "killed, $1"
}

rebooted() { # SAMPLER
	until_true is_sampling "$1"
	fact $? "after a reboot it runs by itself, sampler $1, on $(uname -r)"
	journalctl -q --no-pager -o cat -u otprofd -b -1 -n 12 >/tmp/journal
	said 'taken [0-9]+ = exported' && said 'Stopped .*otprof'
	fact $? "the journal of the boot before ends with its ledger" /tmp/journal
	profiles "after a reboot"
	kernel_names "$1"
	clock "up again"
}

module_built() { # KERNEL
	dkms status otprof 2>&1 | grep -F ", $1, " | grep -q ': installed'
}

use_sampler() { # MODE
	sed -i "s/^#* *mode = .*/mode = $1/" $conf
	grep -q "^mode = $1" $conf || sed -i "s/^\[sampler\]/&\nmode = $1/" $conf
}

without_headers() {
	mark
	use_sampler kmod
	systemctl restart otprofd 2>/dev/null
	journal
	said 'modprobe otprof'
	fact $? "mode = kmod without a module: the journal says what is missing" /tmp/journal
	systemctl stop otprofd
	install /files/this/otprof-dkms_*.deb
	fact $? "apt installs otprof-dkms without headers" /tmp/apt.log
	! dkms status otprof 2>&1 | grep -q ': installed'
	fact $? "no module without headers"
	clock "otprof-dkms"
}

second_kernel() {
	kernel=$(cat /files/newest)
	# Its initrd is not ours to test, and there is one already.
	export INITRD=No
	install /files/debs/linux-image-*.deb /files/debs/linux-headers-*.deb
	mv /var/lib/second-initrd "/boot/initrd.img-$kernel"
	fact $? "a second kernel is installed with its headers: $kernel" /tmp/apt.log
	module_built "$kernel"
	fact $? "DKMS builds the module for it: $(dkms status otprof 2>/dev/null | tr '\n' ' ')" /tmp/apt.log
	echo "$kernel" >/var/lib/guest-kernel
	use_sampler auto
	systemctl start otprofd
	until_true is_sampling bpf
	fact $? "until that kernel runs, mode = auto samples with BPF"
	use_sampler kmod
	clock "second kernel"
}

upgraded() {
	cp $conf /tmp/conf.before
	echo kept >$state/kept
	before=$(main_pid)
	install /files/next/otprof_*.deb /files/next/otprof-dkms_*.deb
	fact $? "apt upgrades both packages" /tmp/apt.log
	until_true is_sampling kmod && [ "$(main_pid)" != "$before" ]
	fact $? "the new version runs" /tmp/apt.log
	cmp -s $conf /tmp/conf.before && [ "$(cat $state/kept)" = kept ] && [ "$(systemctl is-enabled otprofd)" = enabled ]
	fact $? "configuration, state and enablement are kept"
	[ "$(cat /sys/module/otprof/version)" = "$(dpkg-query -W -f '${Version}' otprof-dkms | sed 's/-.*//')" ] &&
		otprof status --json | grep -q "\"version\":\"$(cat /sys/module/otprof/version)\""
	fact $? "daemon and loaded module are of the new version ($(cat /sys/module/otprof/version))"
	[ "$(dkms status otprof 2>/dev/null | wc -l)" = 1 ] && module_built "$(uname -r)"
	fact $? "the old module is gone from DKMS: $(dkms status otprof 2>/dev/null)"
	profiles "after the upgrade"
	clock "upgraded"
}

removed() {
	apt-get remove -y -q otprof-dkms >/tmp/apt.log 2>&1
	fact $? "apt removes otprof-dkms" /tmp/apt.log
	[ ! -e /sys/module/otprof ] && [ -z "$(dkms status otprof 2>/dev/null)" ] &&
		[ -z "$(find /lib/modules -name 'otprof.ko*')" ]
	fact $? "the module is unloaded and its files are gone" /tmp/apt.log
	use_sampler auto
	systemctl reset-failed otprofd
	systemctl restart otprofd
	until_true is_sampling bpf
	fact $? "mode = auto goes on with BPF"
	profiles "without the module"
	apt-get remove -y -q otprof >/tmp/apt.log 2>&1
	fact $? "apt removes otprof" /tmp/apt.log
	[ -z "$(pgrep otprof)" ] && [ ! -e /run/otprof ] && [ -e $conf ] && [ -e $state/kept ]
	fact $? "nothing runs; configuration and state stay" /tmp/apt.log
	apt-get purge -y -q otprof otprof-dkms >/tmp/apt.log 2>&1
	fact $? "apt purges both" /tmp/apt.log
	find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /files -o -path $sink \) -prune -o \
		-name '*otprof*' -print >/tmp/left
	[ ! -s /tmp/left ]
	fact $? "no file is left" /tmp/left
	! getent passwd otprof-engine otprof-net >/dev/null
	fact $? "no user is left"
	! systemctl cat otprofd >/dev/null 2>&1
	fact $? "no unit is left"
}

# Debian 11, whose libraries are too old for the packages: dpkg unpacks them, and the programs are those that bring
# their own. All else is as installed: unit, users, configuration, DKMS.
installed_as_service() {
	dpkg -i --force-depends /files/this/otprof_*.deb /files/this/otprof-dkms_*.deb >/tmp/apt.log 2>&1
	fact $? "dpkg installs otprof and otprof-dkms" /tmp/apt.log
	module_built "$(uname -r)"
	fact $? "DKMS builds the module for this kernel: $(dkms status otprof 2>/dev/null)" /tmp/apt.log
	mkdir -p /opt/otprof
	cp /files/brought/* /opt/otprof/
	mv /opt/otprof/otprofd /usr/sbin/otprofd
	mv /opt/otprof/otprof-worker /usr/libexec/otprof/otprof-worker
	mv /opt/otprof/otprof /usr/bin/otprof
	sed -i -e 's/^#\(\[exporter collector\]\)/\1/' -e 's|^#* *endpoint = .*|endpoint = http://127.0.0.1:4318|' $conf
	printf '[limits]\ncpu_percent = 100\n[profile]\ninterval = 1s\n' >/etc/otprof.conf.d/emulated.conf
	modprobe otprof
	fact $? "modprobe otprof"
	clock "installed"
}

# As every service, it lies in a memory cgroup: what it maps is charged to that, or may not be.
serves() { # SAMPLER
	mark
	use_sampler "$1"
	systemctl start otprofd
	fact $? "$1: systemctl start otprofd" /tmp/apt.log
	until_true is_sampling "$1"
	[ "$(cat /sys/fs/cgroup/system.slice/otprofd.service/memory.current)" -gt 0 ]
	fact $? "$1: the service's memory is counted in its cgroup"
	sampled_without_complaint "$1" "$1: "
	profiles "$1: as a service"
	kernel_names "$1"
	systemctl stop otprofd
	fact $? "$1: systemctl stop otprofd"
	journal
	said 'taken [0-9]+ = exported'
	fact $? "$1: the journal ends with its ledger" /tmp/journal
	clock "served by $1"
}

served_on_debian_11() {
	installed_as_service
	serves kmod
	serves bpf
	modprobe -r otprof
	fact $? "the module unloads"
	clock "end"
	exit $bad
}

begin
[ "$(sed -n 's/^VERSION_ID="*\([0-9]*\).*/\1/p' /etc/os-release)" != 11 ] || served_on_debian_11
case $1 in
1)
	installed_first
	reloaded bpf 49
	killed bpf
	without_headers
	second_kernel
	;;
2)
	rebooted kmod
	reloaded kmod 53
	killed kmod
	upgraded
	removed
	;;
esac
clock "end"
# What went wrong in an earlier boot is not forgotten.
[ $bad = 0 ] || touch /var/lib/guest-bad
[ "$1" = 2 ] || exit 100
[ ! -e /var/lib/guest-bad ]
