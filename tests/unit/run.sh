#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SUITE...: each suite of unit tests in a process of its own, so
# that a crash costs no other suite and those that wait do not add up. Prints
# what failed, and Check's totals of each.
set -u
# Some suites wait for the clock most of their time.
jobs=$((2 * ${CHECK_CPUS:-$(nproc)}))
[ $# -gt 1 ] || { echo "usage: run.sh PROGRAM SUITE..." >&2; exit 2; }

one() { # SUITE
	local began=$SECONDS log code
	log=$(mktemp)
	timeout -k 10 300 "$program" "$1" >"$log" 2>&1
	code=$?
	echo "# $1" >>"$log.out"
	if [ $code = 0 ]; then
		grep '^[0-9]*%: Checks' "$log"
	else
		cat "$log"
		grep -q '^[0-9]*%: Checks.*\(Failures: [1-9]\|Errors: [1-9]\)' "$log" || echo "not ok - suite $1 ended with $code"
	fi >>"$log.out"
	echo "# $1 took $((SECONDS - began)) s" >>"$log.out"
	flock "$program" cat "$log.out"
	rm -f "$log" "$log.out"
	return $((code != 0))
}
export -f one
export program=$1
shift
# The one that waits for longest first.
printf '%s\n' "$@" | sort -u | awk '$1 == "export" { print; next } { rest = rest $1 "\n" } END { printf "%s", rest }' |
	xargs -P $jobs -n 1 bash -c 'one "$0"' || exit 1
