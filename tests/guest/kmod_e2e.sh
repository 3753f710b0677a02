#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The end-to-end suite by the module on a real kernel, in QEMU, and beside it
# by eBPF in the same boot: both at once on the same programs, whose shares,
# stacks, names and losses have to agree. The guest's time goes by instructions,
# so that rates and shares hold however slow the emulation is; some 300 s of its
# time are 4 minutes of a host's CPU.
#
#   kmod_e2e.sh [KERNEL [[SOURCE:]TEST...]]      5.10 6.1 6.12 7.x; 6.1 and all by default
#
# 77 and a reason where the guest, its kernel or the module cannot be had.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${BUILD:-$top/build}" && pwd)
kernel=${1:-6.1}
chosen=$(echo "${@:2}" | tr ' ' .)
log=$build/kmod-e2e.log
dir=$build/kmod-$kernel
root=$build/guest-python
python=/usr/bin/python3 # of the system: its files lie where the guest looks for them

skip() {
	echo "skip - end to end by the module: $1"
	exit 77
}

PATH=$PATH:/usr/sbin:/sbin
tools=() # not over busybox's own of the same name
for tool in bpftool setpriv unshare nm; do
	command -v $tool >/dev/null || skip "no $tool"
	tools+=("$(command -v $tool)=/otprof/bin/$tool")
done
[ -x $python ] || skip "no $python"
"$here/module.sh" "$kernel" "$dir" >"$log" 2>&1
code=$?
[ $code != 77 ] || skip "$(tail -n 1 "$log")"
if [ $code != 0 ]; then
	echo "not ok - the module builds for $kernel"
	sed 's/^/# /' "$log"
	exit 1
fi

# Once for as long as no script changes.
mark=$({ $python -VV && cat "$here/python_root.py" "$top"/tests/e2e/*.py "$top"/tests/lib/*.py; } | sha256sum)
if [ "$(cat "$root.mark" 2>/dev/null)" != "$mark" ]; then
	rm -rf "$root"
	$python "$here/python_root.py" "$root" "$top"/tests/e2e/*.py "$top"/tests/lib/*.py || skip "no Python for the guest"
	echo "$mark" >"$root.mark"
fi

files=()
for program in shares kernelio short short-static depth forkstorm lockstep; do
	files+=("$build/programs/$program=/otprof/build/programs/$program")
done
"$here/boot.sh" -k "$kernel" -m 1536 -t "${OTPROF_GUEST_SECONDS:-1200}" -i 2 -a "loglevel=5${chosen:+ OTPROF_E2E=$chosen}" -r "$root" -o "$log" \
	"$here/kmod_e2e_guest.sh" "$build/otprofd=/otprof/build/otprofd" \
		"$build/otprof-worker=/otprof/build/otprof-worker" "$build/otprof=/otprof/build/otprof" "${files[@]}" \
	"$top/tests/e2e=/otprof/tests/e2e" "$top/tests/lib=/otprof/tests/lib" "$top/kmod/uapi=/otprof/kmod/uapi" \
	"${tools[@]}" "$dir/otprof.ko=/otprof.ko" \
	>/dev/null 2>"$log.err"
code=$?
[ $code != 77 ] || skip "$(tail -n 1 "$log.err")"
sed -nE 's/^((# first try: )?(ok|not ok|skip)) - /\1 - guest: /p' "$log"
sed -n 's/^\(# .* took .*\)/\1/p' "$log"
[ $code = 0 ] && exit 0
grep -q '^not ok' "$log" || echo "not ok - end to end by the module: the guest ended with $code"
cat "$log.err"
tail -n 60 "$log" | sed -E 's/^/# /'
exit $code
