#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...]: the end-to-end tests, or those named, one after the other on this kernel.
# OTPROF_SOURCE=bpf|kmod|perf: the sampler, bpf by default. E2E_BRIEF=1: only what depends on it.
#
# They count samples on a machine that has other things to do: a test that
# fails is run a second time, after the rest, and says so; the second result
# counts. A fact that is wrong stays wrong.
set -u
cd "$(dirname "$0")" || exit 1
tests=(model shares short code stacks storm ledger selection targets reload errors hostile sandbox record convert
	status explain doctor leaks guard sizing real callsites witnesses debug_files truth hostile_debug debuginfod)
[ $# = 0 ] || tests=("$@")
if [ "$(id -u)" != 0 ]; then
	echo "skip - end-to-end tests: the sampler needs root"
	exit 77
fi
what=${OTPROF_SOURCE:+$OTPROF_SOURCE: }
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Leaves what the test said in $out; its exit code, or 1 for what said nothing of its end.
run() {
	local began=$SECONDS code
	timeout -k 10 "${E2E_TIMEOUT:-180}" python3 -B "$1.py" </dev/null >"$out" 2>&1
	code=$?
	if [ $code != 0 ] && [ $code != 77 ] && ! grep -q '^not ok - ' "$out"; then
		echo "not ok - $1 ended with $code: $(tail -n 1 "$out")" >>"$out"
	fi
	echo "# $1 took $((SECONDS - began)) s" >>"$out"
	sed -i "s/^\(ok\|not ok\|skip\) - /&$what/" "$out"
	[ $code = 0 ] || [ $code = 77 ]
}

again=() bad=0
for name in "${tests[@]}"; do
	[ -e "$name.py" ] || { echo "not ok - there is no test $name"; bad=1; continue; }
	echo "# $name"
	if run "$name"; then
		cat "$out"
	else
		sed 's/^\(ok\|not ok\) - /# first try: \1 - /' "$out"
		again+=("$name")
	fi
done
for name in "${again[@]}"; do
	echo "# $name, second try"
	run "$name" || bad=1
	cat "$out"
done
exit $bad
