#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make check: runs the parts in order, counts what they say, and ends with one
# line "otprof: N passed, N failed, N skipped". Parts with a + between them run
# at the same time: a guest uses one CPU (kmod and system run two by themselves). A part that fails does not
# keep the next ones from running; what failed is said once more at the end.
# CHECK_PARTS="unit e2e" chooses parts.
#
# What counts: Check's totals line for unit tests; elsewhere every line
# "ok - fact", "not ok - fact" or "skip - fact: reason". A part that ends with
# an error and without any "not ok" is one failure, and so is one that says nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
MAKE=${MAKE:-make}
PARTS=${CHECK_PARTS:-build unit ring cross fuzz golden e2e packages guest+kmod-e2e kmod system}
LOGS=$BUILD/check
mkdir -p "$LOGS"
: >"$LOGS/failed"
passed=0 failed=0 skipped=0
started=$SECONDS

count_lines() { grep -cE "$1" "$2" || true; }

# part, log, exit code of the part, seconds
count() {
	local ok bad skip totals
	if [ "$1" = unit ] && totals=$(grep -oE 'Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$2" | tail -n 1) &&
		[ -n "$totals" ]; then
		read -r ok bad skip < <(echo "$totals" | tr -dc '0-9 \n')
		bad=$((bad + skip)) ok=$((ok - bad)) skip=0
	else
		ok=$(count_lines '^ok - ' "$2")
		bad=$(count_lines '^not ok - ' "$2")
		skip=$(count_lines '^skip - ' "$2")
	fi
	if [ "$3" = 77 ]; then
		skip=$((skip > 0 ? skip : 1))
	elif [ "$3" != 0 ] && [ "$bad" = 0 ]; then
		bad=1
	elif [ $((ok + bad + skip)) = 0 ]; then
		bad=1
		echo "not ok - $1 said nothing" | tee -a "$2"
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '== %s: %d passed, %d failed, %d skipped (%d s)\n' "$1" "$ok" "$bad" "$skip" "$4"
	[ "$bad" = 0 ] && return
	echo "   end of $2:"
	tail -n 25 "$2" | sed 's/^/   | /'
	# Another name than a fact's: whoever counts facts has had these.
	{ grep '^not ok - ' "$2" || echo "not ok - it ended with $3"; } | sed "s/^not ok - /failed: $1: /" >>"$LOGS/failed"
}

build() {
	$MAKE --no-print-directory -j"$(nproc)" BUILD="$BUILD" all programs tools && echo "ok - it builds"
}

part() {
	case $1 in
	build) build ;;
	unit | ring | cross | fuzz | golden | e2e | packages | guest | kmod | system | kmod-e2e) $MAKE --no-print-directory BUILD="$BUILD" "check-$1" ;;
	*) echo "not ok - no part is called $1" ;;
	esac
}

# Those of a group at the same time; its .rc has what each ended with, and its seconds.
group() {
	local name
	for name; do
		(part "$name" </dev/null >"$LOGS/$name.log" 2>&1; echo $? $((SECONDS - began)) >"$LOGS/$name.rc") &
	done
	wait
}

for names in $PARTS; do
	began=$SECONDS
	echo "== ${names//+/ and }"
	names=${names//+/ }
	# shellcheck disable=SC2086 # a list of names
	group $names &
	pid=$!
	# Facts appear as they are found; the compiler's lines stay in the log.
	# shellcheck disable=SC2046,SC2086
	tail -q -n +1 -F --pid=$pid $(printf "$LOGS/%s.log " $names) 2>/dev/null |
		grep --line-buffered -E '^(ok|not ok|skip) - |^[0-9]+%: Checks'
	wait $pid
	for name in $names; do
		read -r code took <"$LOGS/$name.rc"
		count "$name" "$LOGS/$name.log" "$code" "$took"
	done
done

cat "$LOGS/failed"
echo "otprof: all parts took $((SECONDS - started)) s; logs in $LOGS"
echo "otprof: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
