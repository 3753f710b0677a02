#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The runner of all tests, on parts that fail, say nothing, hang, cannot run.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BUILD=$work/build CHECK_GRACE=1
bad=0
mkdir "$BUILD"

fact() { # STATUS TEXT, with the last output in $out
	if [ "$1" = 0 ]; then
		echo "ok - runner: $2"
	else
		bad=1
		echo "not ok - runner: $2"
		sed 's/^/# /' "$out" | tail -n 40
	fi
}

# Runs PARTS ("NAME CPUS MINUTES" a line); its output in $out, its exit code in $code.
out=$work/out
run() { # PARTS [VARIABLE=VALUE]...
	local table=$1
	shift
	rm -f "$BUILD/moments"
	env -u CHECK_PARTS -u FULL -u CHECK_PATIENCE MAKE=tests/runner/part.sh CHECK_TABLE="$table" CHECK_JOBS=2 "$@" \
		tests/check.sh >"$out" 2>&1
	code=$?
}

ends_with() { # LINE
	[ "$(tail -n 1 "$out")" = "$1" ]
}

has_line() { # PATTERN
	grep -qE "^$1$" "$out"
}

row() { # PART PASSED FAILED SKIPPED RETRIED: as the table has it, whatever it took
	has_line "$1 +$2 +$3 +$4 +$5 +[0-9]+"
}

run "passes one 1"
[ $code = 0 ] && ends_with "otprof: 1 passed, 0 failed, 0 skipped" && row passes 1 0 0 0
fact $? "a part that passes"

run "fails one 1
passes one 1"
[ $code = 1 ] && ends_with "otprof: 2 passed, 1 failed, 0 skipped" && row fails 1 1 0 0 && row passes 1 0 0 0 &&
	has_line "   fails: another one"
fact $? "a part that fails is named with its fact at the end, and the next one runs"

run "says_nothing one 1"
[ $code = 1 ] && ends_with "otprof: 0 passed, 1 failed, 0 skipped" && has_line "   says_nothing: says_nothing reported nothing"
fact $? "a part that reports nothing is a failure"

run "ends_with_3 one 1"
[ $code = 1 ] && ends_with "otprof: 1 passed, 1 failed, 0 skipped" && has_line "   ends_with_3: ends_with_3 ended with 3"
fact $? "a part that ends with an error and reports none is a failure"

run "cannot_run one 1"
[ $code = 0 ] && ends_with "otprof: 0 passed, 0 failed, 1 skipped" && has_line "   cannot_run: cannot_run: no such machine"
fact $? "a part that cannot run is a skip with its reason"

run "skips one 1"
[ $code = 0 ] && ends_with "otprof: 1 passed, 0 failed, 1 skipped" && has_line "   skips: another one: it is Sunday"
fact $? "a fact that is skipped is counted, and repeated with its reason"

run "retries one 1"
[ $code = 0 ] && ends_with "otprof: 1 passed, 0 failed, 0 skipped" && row retries 1 0 0 1 && has_line "   retries: a fact" &&
	has_line " +12  retries: slow"
fact $? "a fact that held at the second try is reported as such, and what took long with its seconds"

run "has_totals one 1"
[ $code = 1 ] && ends_with "otprof: 9 passed, 1 failed, 0 skipped" &&
	has_line "   has_totals: tests/unit/check_buf.c:12:F:core:buf_grows:0: Assertion 'x' failed"
fact $? "totals of unit tests are added up, and the one that fails is named at the end"

is_gone() { # FILE with a process id: no such process, or one that nobody has waited for
	[ -s "$1" ] && ! grep -q '^State:.[RSDTtI]' "/proc/$(cat "$1")/status" 2>/dev/null
}
run "hangs one 0.03
passes one 1"
[ $code = 1 ] && ends_with "otprof: 2 passed, 1 failed, 0 skipped" && has_line "   hangs: hangs is over after 1.8 s"
fact $? "a part that hangs is a failure at its deadline, and the next one runs"
is_gone "$BUILD/deaf" && is_gone "$BUILD/apart"
fact $? "and nothing of it is left, in whatever process group"

run "passes one 1" CHECK_PARTS="passes nothing"
[ $code = 1 ] && ends_with "otprof: 1 passed, 1 failed, 0 skipped" && has_line "   nothing: nothing is no part"
fact $? "a part that does not exist is a failure"

run "fails first 1
passes one 1"
[ $code = 1 ] && ends_with "otprof: 1 passed, 2 failed, 0 skipped" && has_line "   passes: passes was not run, as fails failed"
fact $? "what all others need fails: they are failures, and not run"

run "passes one 1
fails one 1" CHECK_PARTS="passes"
[ $code = 0 ] && ends_with "otprof: 1 passed, 0 failed, 0 skipped"
fact $? "parts can be chosen"

moment() { # PART begin|end
	sed -n "s/^$1 $2 //p" "$BUILD/moments"
}
run "passes1 one 1
passes2 one 1
passes3 all 1
passes4 one 1"
[ "$(moment passes2 begin)" -lt "$(moment passes1 end)" ]
fact $? "parts that take one CPU run side by side"
[ "$(moment passes3 begin)" -gt "$(moment passes1 end)" ] && [ "$(moment passes3 begin)" -gt "$(moment passes2 end)" ] &&
	[ "$(moment passes4 begin)" -gt "$(moment passes3 end)" ]
fact $? "a part that takes the machine runs alone"

# A terminal's Ctrl-C.
rm -f "$BUILD/deaf" "$BUILD/apart"
env -u CHECK_PARTS MAKE=tests/runner/part.sh CHECK_TABLE="hangs one 5" tests/check.sh >"$out" 2>&1 &
runner=$!
for _ in $(seq 100); do
	[ ! -s "$BUILD/apart" ] || break
	sleep 0.1
done
kill -TERM $runner
wait $runner
[ $? = 130 ] && is_gone "$BUILD/deaf" && is_gone "$BUILD/apart"
fact $? "a runner that is interrupted leaves nothing"
exit $bad
