#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In an arm64 guest: one capture of each interpreter, on the console as base64.
rt=/run/otprof

program_of() {
	case $1 in
	python) echo "/usr/bin/python3.11 /programs/python.py" ;;
	ruby) echo "/usr/bin/ruby3.1 /programs/ruby.rb" ;;
	php) echo "/usr/bin/php8.2 /programs/php.php" ;;
	perl) echo "/usr/bin/perl /programs/perl.pl" ;;
	esac
}

capture() { # LANGUAGE
	# shellcheck disable=SC2046 # a program and its file
	set -- "$1" $(program_of "$1")
	cat >/etc/otprof.conf <<CONF
[sampler]
mode = bpf
frequency_hz = 97
[profile]
interval = 1s
[targets]
include = exe:$2
[limits]
cpu_percent = 0
[exporter files]
endpoint = file:///var/tmp/$1
[daemon]
runtime_dir = $rt
CONF
	otprofd -f /etc/otprof.conf --capture "/tmp/$1.capture" >/tmp/log 2>&1 &
	daemon=$!
	for _ in $(seq 90); do
		grep -q ': sampling (engine' /tmp/log && break
		sleep 1
	done
	"$2" "$3" 3 >/dev/null 2>/tmp/said || cat /tmp/said
	kill -TERM $daemon
	wait $daemon
	cat /tmp/log
	otprof convert -o "/tmp/$1.collapsed" "/var/tmp/$1" >/dev/null 2>&1
	echo "# $1: $(wc -l <"/tmp/$1.collapsed") different stacks"
	head -n 3 "/tmp/$1.collapsed"
	gzip -9 "/tmp/$1.capture"
	echo "begin $1"
	base64 "/tmp/$1.capture.gz"
	echo "end $1"
}

languages=$(sed 's/.*OTPROF_LANGUAGES=\([a-z,]*\).*/\1/; s/,/ /g' /proc/cmdline)
for language in $languages; do
	capture "$language"
done
