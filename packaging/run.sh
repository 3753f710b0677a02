#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make run: profiles this host from the build tree, nothing installed, until
# Ctrl-C or for RUN_SECONDS. Everything it writes is in BUILD/run.
set -eu
build=$(realpath "${1:-build}")
run=$build/run
hz=${RUN_HZ:-97}

[ "$(id -u)" = 0 ] || { echo "run: the sampler needs root: sudo make run" >&2; exit 1; }

# profiles/ is made by otprofd, for the user that writes there.
mkdir -p "$run/rt"
cat >"$run/otprof.conf" <<CONF
[sampler]
frequency_hz = $hz
[exporter files]
endpoint = file://$run/profiles
keep_files = 24
[hub]
listen = 127.0.0.1:${RUN_HUB_PORT:-4380}
[daemon]
runtime_dir = $run/rt
CONF

daemon=
stop() {
	trap - EXIT INT TERM
	[ -n "$daemon" ] || return 0
	kill -TERM "$daemon" 2>/dev/null || true
	wait "$daemon" || echo "run: otprofd ended with an error, see $run/otprofd.log"
	echo "run: stopped; the last flame graph is $run/latest.svg"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

rm -f "$run/rt/status.sock"
"$build/otprofd" -f "$run/otprof.conf" >"$run/otprofd.log" 2>&1 &
daemon=$!
for _ in $(seq 100); do
	[ -S "$run/rt/status.sock" ] && break
	kill -0 $daemon 2>/dev/null || break
	sleep 0.1
done
if ! [ -S "$run/rt/status.sock" ] || ! kill -0 $daemon 2>/dev/null; then
	echo "run: otprofd did not start:" >&2
	tail -n 20 "$run/otprofd.log" >&2
	exit 1
fi

echo "run: $hz samples a second on every busy CPU, profiles in $run/profiles"
echo "run: every workload live in a browser: $("$build/otprof" ui --print --runtime-dir "$run/rt")"
echo "run: flame graph of the last minute: $run/latest.svg (open it in a browser, reload to follow)"
watch=("$build/otprof" watch --dir "$run/profiles" --runtime-dir "$run/rt" --svg "$run/latest.svg")
if [ -n "${RUN_SECONDS:-}" ]; then
	timeout --foreground -s INT -k 10 "$RUN_SECONDS" "${watch[@]}" || [ $? = 124 ]
else
	echo "run: Ctrl-C ends it"
	"${watch[@]}"
fi
