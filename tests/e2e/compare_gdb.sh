#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random stops of a program: is our stack gdb's stack?
#
#   compare_gdb.sh UNWIND_STOPS COUNT PID        a process that runs already
#   compare_gdb.sh UNWIND_STOPS COUNT -- COMMAND a command, repeated as often as it ends
#
# Exit status: unwind_stops' own; 77 where gdb is missing.
set -u
tool=$1 count=$2
shift 2
command -v gdb >/dev/null || exit 77
here=$(dirname "$(readlink -f "$0")")
dir=$(mktemp -d) || exit 2
child=
trap 'rm -rf "$dir"; [ -z "$child" ] || kill "$child" 2>/dev/null' EXIT

stops() { # PID
	STOPS_PID=$1 STOPS_DIR=$dir STOPS_COUNT=$count gdb -nx -q -batch -x "$here/gdb_stops.py" >"$dir/log" 2>&1
	[ -s "$dir/stops" ] || { tail -5 "$dir/log" >&2; return 2; }
}

if [ "$1" = -- ]; then
	shift
	"$@" >/dev/null 2>&1 &
	child=$!
	sleep 0.2
	stops "$child" || exit 2
else
	stops "$1" || exit 2
fi
"$tool" "$dir" ${VERBOSE:+-v}
status=$?
[ -z "${KEEP:-}" ] || { rm -rf "$KEEP"; cp -r "$dir" "$KEEP"; }
exit $status
