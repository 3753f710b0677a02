#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--accept] OTPROFD: replays every tests/golden/CASE.capture and compares what
# is printed with CASE.ok. --accept writes CASE.ok anew, to be reviewed as a diff.
set -u
accept=
[ "$1" != --accept ] || { accept=1; shift; }
otprofd=$(realpath "$1")
cd "$(dirname "$0")" || exit 1
bad=0 seen=0
for capture in *.capture *.capture.gz; do
	[ -e "$capture" ] || continue
	seen=1
	case=${capture%.gz}
	case=${case%.capture}
	out=$(mktemp) file=$capture
	[ "${capture%.gz}" = "$capture" ] || { file=$(mktemp); gunzip -c "$capture" >"$file"; }
	if ! timeout 60 "$otprofd" --replay "$file" >"$out" 2>"$out.err" </dev/null; then
		echo "not ok - golden $case: replay failed: $(tail -n 1 "$out.err")"
		bad=1
	elif [ -n "$accept" ]; then
		cp "$out" "$case.ok"
		echo "ok - golden $case accepted"
	elif diff -u "$case.ok" "$out" >"$out.diff" 2>&1; then
		echo "ok - golden $case"
	else
		echo "not ok - golden $case"
		head -n 40 "$out.diff"
		bad=1
	fi
	[ "$file" = "$capture" ] || rm -f "$file"
	rm -f "$out" "$out.err" "$out.diff"
done
[ $seen = 1 ] || { echo "not ok - there is no golden case"; bad=1; }
exit $bad
