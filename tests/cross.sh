#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles for arm64 what is compiled here, with the same warnings as errors:
# sizes, alignment, signedness of char and missing x86 headers show without a
# machine. Nothing is linked: the target's libraries are not there.
#   cross.sh, with BUILD a directory that has generated headers
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
CROSS=${CROSS:-aarch64-linux-gnu-gcc}
CLANG=${CLANG:-clang}
WARN="-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter -Werror"
# The libraries' headers are the same for all processors; the C library's are the compiler's own.
HEADERS="-I. -Iuserspace -I$BUILD/gen -idirafter /usr/include -idirafter /usr/include/$(gcc -dumpmachine)"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0

fact() { # fact STATUS TEXT FILE
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		bad=1
		echo "not ok - $2"
		head -n 30 "$3" | sed 's/^/   | /'
	fi
}

userspace() {
	local folder
	for folder in userspace/*/; do
		[ -n "$(find "$folder" -name '*.c' -print -quit)" ] || continue
		# shellcheck disable=SC2086
		find "$folder" -name '*.c' -print0 | xargs -0 -n 8 -P "${CHECK_CPUS:-$(nproc)}" "$CROSS" -std=gnu11 -D_GNU_SOURCE \
			-DOTPROF_VERSION='"0"' -O1 $WARN $HEADERS -fsyntax-only 2>"$out/log"
		fact $? "arm64: $folder compiles" "$out/log"
	done
}

sampler() {
	# shellcheck disable=SC2086
	"$CLANG" -target bpf -D__TARGET_ARCH_arm64 -O2 -g -Wall -Wextra -Werror -I. -Ibpf -c -o "$out/sampler.o" \
		bpf/sampler.bpf.c 2>"$out/log"
	fact $? "arm64: bpf/ compiles" "$out/log"
}

sampler
if command -v "$CROSS" >/dev/null; then
	userspace
else
	echo "skip - arm64: userspace compiles: no $CROSS here (Debian: gcc-aarch64-linux-gnu)"
fi
exit $bad
