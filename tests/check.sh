#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make check, make check-full: runs the parts, counts their facts, and ends with
# a table, what took longest, what was skipped, retried and failed, and one line
# "otprof: N passed, N failed, N skipped".
#
#   check.sh [full]       CHECK_PARTS="unit e2e" chooses parts
#
# A part is the target check-PART of make, with CHECK_CPUS in its environment:
# how many CPUs it may keep busy. A part takes the whole machine (all), or one
# CPU (one); parts of the second kind run side by side, as many as there are
# CPUs (CHECK_JOBS). One (first) is what all others need: where it fails, they
# are failures without being run; any other failure keeps no part from running.
#
# Counted are lines "ok - fact", "not ok - fact", "skip - fact: reason", and the
# totals lines of Check. A part is a failure too where it ends with an error and
# no "not ok", where it reports nothing, and where it is not over at its
# deadline; the deadlines are for a slow machine (CHECK_PATIENCE=3: three times
# as long). Then it is asked to end, and killed 10 s later (CHECK_GRACE). Exit
# code 77 is a part that cannot run here: a skip.
set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
MAKE=${MAKE:-make}
slots=${CHECK_JOBS:-$(nproc)}
patience=${CHECK_PATIENCE:-1} grace=${CHECK_GRACE:-10}
[ "${1:-}" != full ] || export FULL=1

# Part, CPUs, minutes at most. What takes longest begins early, beside the others.
PARTS_CHECK="
build    first 20
e2e      one   50
e2e-send one   20
golden   one    5
runner   one    5
unit     one   10
page     one    5
cross    one    5
kmod-e2e one   40
guest    one   40
e2e-hub  one   20
kmod     one   20
e2e-perf one   20
fuzz     one   15
packages one   20
ring     one   10
"
PARTS_FULL="
build    first 20
lint     all   30
e2e      one  180
e2e-send one   40
e2e-hub  one   20
e2e-perf one   20
golden   one    5
runner   one    5
unit     one   10
page     one    5
cross    one    5
ring     one   40
kmod-e2e one   40
packages one   20
guest    one   90
fuzz     all  150
kmod     all   90
system   all   90
"
table=${CHECK_TABLE:-${FULL:+$PARTS_FULL}}
table=${table:-$PARTS_CHECK}

logs=$BUILD/check
rm -rf "$logs"
mkdir -p "$logs"
summary=$logs/summary
passed=0 failed=0 skipped=0
declare -A keepers=() # process: part
declare -A followers=() # part: process

# --- one part ---

# Everything that a part started is in its session, in whatever process group.
is_alive() { # LEADER
	ps -s "$1" -o stat= | grep -qv '^Z'
}

# Asked to end, then killed. Returns when all are dead; what the kernel holds back is left after a minute.
end_session() { # LEADER
	local end=$((SECONDS + grace)) with=TERM
	while is_alive "$1" && [ $SECONDS -lt $((end + 60)) ]; do
		[ -z "$with" ] || pkill "-$with" -s "$1"
		with=''
		[ $SECONDS -lt $end ] || with=KILL
		sleep 0.1
	done
}

# Runs a part to its end or its deadline; leaves its log, and its exit code and seconds in NAME.rc.
keep() { # NAME CPUS MINUTES
	local log=$logs/$1.log leader clock code limit began=$SECONDS
	limit=$(awk -v m="$3" -v p="$patience" 'BEGIN { print m * 60 * p }')
	CHECK_CPUS=$2 setsid "$MAKE" --no-print-directory BUILD="$BUILD" "check-$1" </dev/null >>"$log" 2>&1 &
	leader=$!
	sleep "$limit" &
	clock=$!
	# shellcheck disable=SC2064 # the processes of now
	trap "kill $clock; end_session $leader; exit 143" TERM
	wait -n "$leader" "$clock"
	code=$?
	if ! kill "$clock" 2>/dev/null; then
		echo "not ok - $1 is over after $limit s" >>"$log"
		code=124
	fi
	end_session "$leader"
	wait 2>/dev/null # the shell has nothing to say of whom it killed
	echo "$code $((SECONDS - began))" >"$logs/$1.rc"
}

start() { # NAME CPUS MINUTES
	echo "== $1"
	: >"$logs/$1.log"
	keep "$@" &
	keepers[$!]=$1
	# Facts appear as they are found; the compiler's lines stay in the log.
	{ tail -n +1 -s 0.2 -f --pid=$! "$logs/$1.log" | grep --line-buffered -E '^(ok|not ok|skip) - |^[0-9]+%: Checks'; } &
	followers[$1]=$!
}

# --- its result ---

count_lines() { grep -cE "$1" "$2" || true; }

# Of all totals lines in a log: those that passed, and those that did not.
check_totals() { # LOG
	sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' "$1" |
		awk '{ n += $1; bad += $2 + $3 } END { print n - bad, bad + 0 }'
}

count() { # NAME CODE SECONDS
	local log=$logs/$1.log ok bad skip again
	read -r ok bad < <(check_totals "$log")
	ok=$((ok + $(count_lines '^ok - ' "$log")))
	bad=$((bad + $(count_lines '^not ok - ' "$log")))
	skip=$(count_lines '^skip - ' "$log")
	again=$(count_lines '^# first try: not ok - ' "$log")
	if [ "$2" = 77 ]; then
		[ "$skip" -gt 0 ] || add_line "$log" "skip - $1: $(tail -n 1 "$log")"
		skip=$((skip > 0 ? skip : 1))
	elif [ "$2" != 0 ] && [ "$bad" = 0 ]; then
		add_line "$log" "not ok - $1 ended with $2"
		bad=1
	elif [ $((ok + bad + skip)) = 0 ]; then
		add_line "$log" "not ok - $1 reported nothing"
		bad=1
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '== %s: %d passed, %d failed, %d skipped (%d s)\n' "$1" "$ok" "$bad" "$skip" "$3"
	printf '%-12s %7d %7d %8d %8d %8d\n' "$1" "$ok" "$bad" "$skip" "$again" "$3" >>"$summary"
	[ "$bad" != 0 ] || return 0
	echo "   end of $log:"
	tail -n 25 "$log" | sed 's/^/   | /'
}

add_line() { # LOG LINE
	echo "$2" | tee -a "$1"
}

fail_unseen() { # NAME REASON
	echo "not ok - $1 $2" | tee "$logs/$1.log"
	echo "1 0" >"$logs/$1.rc"
	count "$1" 1 0
}

# Waits for one part that runs, and counts it.
reap() {
	local pid name code seconds
	wait -n -p pid "${!keepers[@]}"
	name=${keepers[$pid]}
	unset "keepers[$pid]"
	wait "${followers[$name]}"
	read -r code seconds <"$logs/$name.rc" || code=1 seconds=0
	count "$name" "$code" "$seconds"
}

reap_all() {
	while [ ${#keepers[@]} -gt 0 ]; do reap; done
}

# --- the end ---

# Lines of all logs that begin with PATTERN (what it holds in parentheses stays), with their part before them.
of_all_logs() { # PATTERN HEADING
	local name
	for name in $order; do
		[ ! -e "$logs/$name.log" ] || sed -nE "s,^($1),$name: \\2,p" "$logs/$name.log"
	done >"$logs/list"
	# Other words than a fact's: whoever counts facts has had these.
	[ ! -s "$logs/list" ] || { echo "$2" && sed 's/^/   /' "$logs/list"; }
}

slowest() {
	local name
	echo "slowest, in seconds:"
	for name in $order; do
		[ ! -e "$logs/$name.log" ] || sed -nE "s/^# (.*) took ([0-9]+) s$/\2 $name: \1/p" "$logs/$name.log"
	done | sort -rn | head -n 10 | awk '{ printf "   %6d  ", $1; $1 = ""; print substr($0, 2) }'
}

# shellcheck disable=SC2317 # called by trap
interrupted() {
	trap '' INT TERM
	[ ${#keepers[@]} = 0 ] || { kill "${!keepers[@]}" && wait "${!keepers[@]}"; } 2>/dev/null
	echo "otprof: interrupted; logs in $logs"
	exit 130
}
trap interrupted INT TERM

order='' needed=''
while read -r name cpus minutes; do
	[ -n "$name" ] || continue
	case " ${CHECK_PARTS:-$name} " in *" $name "*) ;; *) [ "$cpus" = first ] || continue ;; esac
	order="$order $name"
	if [ -n "$needed" ]; then
		fail_unseen "$name" "was not run, as $needed failed"
	elif [ "$cpus" = one ]; then
		while [ ${#keepers[@]} -ge "$slots" ]; do reap; done
		start "$name" 1 "$minutes"
	else
		reap_all
		start "$name" "$(nproc)" "$minutes"
		reap_all
		[ "$cpus" != first ] || [ $failed = 0 ] || needed=$name
	fi
done <<<"$table"
reap_all
for name in ${CHECK_PARTS:-}; do
	case " $order " in *" $name "*) continue ;; esac
	order="$order $name"
	fail_unseen "$name" "is no part"
done

echo
printf '%-12s %7s %7s %8s %8s %8s\n' part passed failed skipped retried seconds
for name in $order; do grep "^$name " "$summary"; done
slowest
of_all_logs 'skip - ()' 'skipped:'
of_all_logs '# first try: not ok - ()' 'did not hold at the first try:'
of_all_logs 'not ok - |(tests/unit/[^ ]*:[FE]:)' 'failed:'
echo "otprof: all parts took $SECONDS s; logs in $logs"
echo "otprof: $passed passed, $failed failed, $skipped skipped" | tee "$logs/totals"
[ "$failed" = 0 ]
