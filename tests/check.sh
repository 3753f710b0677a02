#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make check: runs the parts in order, counts what they say, and ends with one
# line "otprof: N passed, N failed, N skipped". A part that fails does not
# keep the next ones from running. CHECK_PARTS="unit e2e" chooses parts; one
# more, system, runs only when it is chosen.
#
# What counts: Check's totals line for unit tests; elsewhere every line
# "ok - fact", "not ok - fact" or "skip - fact: reason". A part that ends with
# an error and without any "not ok" is one failure, and so is one that says nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
MAKE=${MAKE:-make}
PARTS=${CHECK_PARTS:-build unit ring cross fuzz golden e2e packages guest kmod kmod-e2e}
LOGS=$BUILD/check
mkdir -p "$LOGS"
passed=0 failed=0 skipped=0
started=$SECONDS

count_lines() { grep -cE "$1" "$2" || true; }

# part, log, exit code of the part
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
	printf '== %s: %d passed, %d failed, %d skipped (%d s)\n' "$1" "$ok" "$bad" "$skip" $((SECONDS - began))
	[ "$bad" = 0 ] || { echo "   end of $2:"; tail -n 25 "$2" | sed 's/^/   | /'; }
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

for name in $PARTS; do
	began=$SECONDS
	echo "== $name"
	part "$name" </dev/null >"$LOGS/$name.log" 2>&1 &
	pid=$!
	# Facts appear as they are found; the compiler's lines stay in the log.
	tail -n +1 -F --pid=$pid "$LOGS/$name.log" 2>/dev/null | grep --line-buffered -E '^(ok|not ok|skip) - |^[0-9]+%: Checks'
	wait $pid
	count "$name" "$LOGS/$name.log" $?
done

# Longer than a change can wait for.
case " $PARTS " in
*" system "*) ;;
*)
	echo "skip - system: takes half an hour; make check-system"
	skipped=$((skipped + 1))
	;;
esac
echo "otprof: all parts took $((SECONDS - started)) s; logs in $LOGS"
echo "otprof: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
