#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [full] [+GROUP|[SOURCE:]NAME]...: the end-to-end tests, or those of a group, or those named, one after the other
# on this kernel. SOURCE: bpf, kmod or perf, OTPROF_SOURCE by default, else bpf; with a source before its name a script
# runs only what depends on that. full: every variant, and longer. Groups, each a part of make check: host, send, hub, perf.
#
# They count samples on a machine that has other things to do: a test that
# fails is run a second time, after the rest, and says so; the second result
# counts. A fact that is wrong stays wrong.
set -u
cd "$(dirname "$0")" || exit 1
# What is sampled and named; how it is sent; the hub; and by perf's sampler what depends on that.
host=(stacks ledger real storm debuginfod guard guard_start truth callsites shares witnesses record convert errors targets
	explain sizing hostile hang fairness paths container leaks sandbox unit takeover forged views status model debug_files
	hostile_debug selection code makers generated interpreted embedded fakes hotspot hotspot_churn hotspot_leaf hotspot_pushes
	hotspot_calls hotspot_virtual javascript javascript_churn javascript_deopt javascript_places javascript_regexp erlang lua lua_churn dotnet
	short doctor events golang golang_labels golang_modes lockstep)
send=(reload otlp_grpc spool faults collector conformance self_metrics)
hub=(hub hub_api hub_select hub_net hub_hostile hub_top hub_page hub_page_slots hub_agree)
perf=(perf:ledger perf:events perf:agree perf:record perf:ordinary perf:shares perf:selection perf:model perf:views
	perf:errors perf:lockstep)
limit=${E2E_TIMEOUT:-180}
if [ "${1:-}" = full ]; then
	shift
	host+=(dotnet_churn)
	hub+=(hub_schema)
	export TRUTH=${TRUTH:-all} GUARD_FULL=${GUARD_FULL:-1} KILLS=${KILLS:-50} OTPROF_MUTATIONS=${OTPROF_MUTATIONS:-1500}
	export HANG=${HANG:-all} COLLECTOR=${COLLECTOR:-build} OUTAGE=${OUTAGE:-full} FAULTS=${FAULTS:-full}
	export INTERPRETED=${INTERPRETED:-all} EMBEDDED=${EMBEDDED:-all} GOLANG=${GOLANG:-all} GENERATED=${GENERATED:-all}
	export HOTSPOT=${HOTSPOT:-all} JAVASCRIPT=${JAVASCRIPT:-all} ERLANG=${ERLANG:-all} DOTNET=${DOTNET:-all} LUA=${LUA:-long}
	limit=${E2E_TIMEOUT:-1200}
fi
[ $# != 0 ] || set -- +host +send +hub +perf
tests=()
for wanted; do
	case $wanted in
	+host) tests+=("${host[@]}") ;;
	+send) tests+=("${send[@]}") ;;
	+hub) tests+=("${hub[@]}") ;;
	+perf) tests+=("${perf[@]}") ;;
	*) tests+=("$wanted") ;;
	esac
done
if [ "$(id -u)" != 0 ]; then
	echo "skip - end-to-end tests: the sampler needs root"
	exit 77
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Leaves the test's output in $out; fails as the test does, and where it reported nothing.
run() { # [SOURCE:]NAME
	local name=${1#*:} began=$SECONDS code
	local source=${OTPROF_SOURCE:-} brief=${E2E_BRIEF:-}
	[ "$name" = "$1" ] || { source=${1%%:*} brief=1; }
	OTPROF_SOURCE=${source:-bpf} E2E_BRIEF=$brief timeout -k 10 "$limit" python3 -B "$name.py" </dev/null >"$out" 2>&1
	code=$?
	if [ $code = 124 ]; then
		echo "not ok - $name is over after $limit s" >>"$out"
	elif [ $code != 0 ] && [ $code != 77 ] && ! grep -q '^not ok - ' "$out"; then
		echo "not ok - $name ended with $code: $(tail -n 1 "$out")" >>"$out"
	elif [ $code = 0 ] && ! grep -qE '^(ok|skip) - ' "$out"; then
		echo "not ok - $name reported nothing" >>"$out"
		code=1
	fi
	sed -i "s/^\(ok\|not ok\|skip\) - /&${source:+$source: }/" "$out"
	echo "# $1 took $((SECONDS - began)) s" >>"$out"
	[ $code = 0 ] || [ $code = 77 ]
}

again=() bad=0
for test in "${tests[@]}"; do
	[ -e "${test#*:}.py" ] || { echo "not ok - there is no test $test"; bad=1; continue; }
	echo "# $test"
	if run "$test"; then
		cat "$out"
	else
		sed 's/^\(ok\|not ok\) - /# first try: \1 - /' "$out"
		again+=("$test")
	fi
done
for test in "${again[@]}"; do
	echo "# $test, second try"
	run "$test" || bad=1
	cat "$out"
done
exit $bad
