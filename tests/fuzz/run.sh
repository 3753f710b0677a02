#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh SECONDS NAME...: every fuzz target for so long, as many at a time as there are CPUs; one fact each.
# What libFuzzer finds new stays in $BUILD/fuzz/corpus/NAME, what breaks in $BUILD/fuzz/crash-NAME-*.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
seconds=$1
shift
mkdir -p "$BUILD/fuzz"

one() {
	local name=$1 seeds=tests/fuzz/seeds/$1 corpus=$BUILD/fuzz/corpus/$1 log=$BUILD/fuzz/$1.log
	mkdir -p "$corpus"
	[ -d "$seeds" ] || seeds=$corpus
	if [ -x "$BUILD/fuzz/fuzz_$name" ]; then
		"$BUILD/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1536 -max_len=65536 \
			-artifact_prefix="$BUILD/fuzz/crash-$name-" -print_final_stats=1 -verbosity=1 \
			"$corpus" "$seeds" >"$log" 2>&1
	else
		timeout -k 5 $((seconds + 60)) "$BUILD/asan/fuzz_$name" "$seconds" "$seeds" >"$log" 2>&1
	fi || {
		echo "not ok - fuzz $name (log: $log)"
		grep -m 3 -E 'ERROR|SUMMARY|runtime error' "$log"
		return 1
	}
	echo "ok - fuzz $name: $(grep -oE '(stat::number_of_executed_units: |runs: )[0-9]+' "$log" | grep -oE '[0-9]+$') inputs"
}
export -f one
export BUILD seconds
[ $# -gt 0 ] || { echo "not ok - there is no fuzz target"; exit 1; }
printf '%s\n' "$@" | xargs -n 1 -P "${CHECK_CPUS:-$(nproc)}" bash -c 'one "$0"'
