#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In place of make, for the runner's own tests: part.sh ... check-PART is a part
# that behaves as its name says. Moments are noted in $BUILD/moments.
for target; do :; done
part=${target#check-}
note() { echo "$part $1 $(date +%s%N)" >>"$BUILD/moments"; }

note begin
case $part in
passes*) echo "ok - a fact" && sleep 0.5 ;;
fails) echo "ok - a fact" && echo "not ok - another one" && exit 1 ;;
says_nothing) echo "a line that is no fact" ;;
ends_with_3) echo "ok - a fact" && exit 3 ;;
cannot_run) echo "no such machine" && exit 77 ;;
skips) printf 'ok - a fact\nskip - another one: it is Sunday\n' ;;
retries) printf '# first try: not ok - a fact\nok - a fact\n# slow took 12 s\n' ;;
has_totals)
	echo "100%: Checks: 7, Failures: 0, Errors: 0"
	echo "66%: Checks: 3, Failures: 1, Errors: 0"
	echo "tests/unit/check_buf.c:12:F:core:buf_grows:0: Assertion 'x' failed"
	exit 1
	;;
hangs)
	echo "ok - a fact"
	# One that listens to nobody, and one that has left the process group.
	(trap '' TERM && sleep 60 && sleep 60) &
	echo $! >"$BUILD/deaf"
	timeout 120 sleep 120 &
	echo $! >"$BUILD/apart"
	wait
	;;
*) echo "part.sh: no part is called $part" && exit 2 ;;
esac
note end
