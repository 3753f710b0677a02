#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...]: the end-to-end tests, or those named, one after the other on this kernel.
set -u
cd "$(dirname "$0")" || exit 1
tests=(model shares short storm ledger selection errors hostile sandbox record real callsites)
[ $# = 0 ] || tests=("$@")
if [ "$(id -u)" != 0 ]; then
	echo "skip - end-to-end tests: the sampler needs root"
	exit 77
fi
bad=0
for name in "${tests[@]}"; do
	[ -e "$name.py" ] || { echo "not ok - there is no test $name"; bad=1; continue; }
	echo "# $name"
	began=$SECONDS
	out=$(mktemp)
	timeout -k 10 "${E2E_TIMEOUT:-180}" python3 -B "$name.py" </dev/null 2>&1 | tee "$out"
	code=${PIPESTATUS[0]}
	if [ "$code" != 0 ] && [ "$code" != 77 ] && ! grep -q '^not ok - ' "$out"; then
		echo "not ok - $name ended with $code: $(tail -n 1 "$out")"
	fi
	[ "$code" = 0 ] || [ "$code" = 77 ] || bad=1
	rm -f "$out"
	echo "# $name took $((SECONDS - began)) s"
done
exit $bad
