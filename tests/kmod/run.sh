#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module's ring in userspace, plain and under the thread sanitizer; its copy
# of user memory; its counts of ticks; its schedule of ticks; and its compile
# probes against a made-up kernel.
#   run.sh [model]    with the model checker too, which takes minutes
set -eu
cd "$(dirname "$0")/../.."
out=${BUILD:-build}/kmod-ring
flags="-std=gnu11 -D_GNU_SOURCE -I. -Iuserspace -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
	-Wvla -Wno-unused-parameter -Werror"
mkdir -p "$out"
bad=0
# shellcheck disable=SC2086
build() { ${CC:-gcc} $flags $2 -o "$out/$1" tests/kmod/test_ring.c kmod/ring.c userspace/ring/ring.c -pthread; }
build plain ''
"$out/plain" || bad=1
build tsan -fsanitize=thread
# Some kernels lay out memory in a way that the sanitizer of older compilers does not know.
if TSAN_OPTIONS=halt_on_error=1 setarch -R "$out/tsan" ' under the thread sanitizer' >"$out/tsan.log" 2>&1; then
	cat "$out/tsan.log"
elif grep -q 'unexpected memory mapping' "$out/tsan.log"; then
	echo "skip - module's ring under the thread sanitizer: it does not run on this kernel"
else
	bad=1
	grep -E '^(ok|not ok) - ' "$out/tsan.log" || true
	echo "not ok - module's ring under the thread sanitizer: no report"
	head -n 30 "$out/tsan.log"
fi
# Of the kernel's headers there is nothing here; the test has what the file needs of them.
mkdir -p "$out/include/linux"
for header in kernel mm preempt rcupdate sched string; do : >"$out/include/linux/$header.h"; done
# shellcheck disable=SC2086
${CC:-gcc} $flags -I"$out/include" -o "$out/ustack" tests/kmod/test_ustack.c
"$out/ustack" || bad=1
# shellcheck disable=SC2086
${CC:-gcc} $flags -I"$out/include" -o "$out/capture" tests/kmod/test_capture.c kmod/ring.c userspace/source/counters.c
"$out/capture" || bad=1
# shellcheck disable=SC2086
${CC:-gcc} $flags -o "$out/schedule" tests/kmod/test_schedule.c kmod/schedule.c -lm
"$out/schedule" || bad=1
tests/kmod/probes.sh || bad=1
if [ "${1:-}" = model ]; then
	tests/kmod/model.sh || [ $? = 77 ] || bad=1
fi
exit $bad
