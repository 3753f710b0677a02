#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coverage.sh NAME...: what the fuzz targets reach. Every target runs once over
# its seeds and over what `make fuzz` has found, in a build that counts; then
# one line per target (lines of the files that it enters), and per file, of
# all targets together. Needs clang's libFuzzer, llvm-profdata and llvm-cov.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
out=$BUILD/cover/out
mkdir -p "$out"

replay() { # NAME
	local inputs=()
	for dir in "tests/fuzz/seeds/$1" "$BUILD/fuzz/corpus/$1"; do
		[ -d "$dir" ] && inputs+=("$dir")
	done
	LLVM_PROFILE_FILE="$out/$1.raw" "$BUILD/cover/fuzz_$1" -runs=0 -timeout=30 -max_len=65536 "${inputs[@]}" \
		>"$out/$1.log" 2>&1 || echo "$1: ended with an error, see $out/$1.log" >&2
	llvm-profdata merge -sparse -o "$out/$1.prof" "$out/$1.raw"
}

# FILE LINES MISSED of every file of ours that was entered.
lines() { # PROFILE BINARY...
	local profile=$1 objects=()
	shift
	for binary; do objects+=(-object "$binary"); done
	llvm-cov report -instr-profile="$profile" "${objects[@]}" 2>/dev/null |
		awk -v top="${PWD#/}/" '{ sub(top, "", $1) } $1 ~ /\.[ch]$/ && $8 > $9 { print $1, $8, $9 }'
}

for name; do
	replay "$name"
	lines "$out/$name.prof" "$BUILD/cover/fuzz_$name" | grep -v '^tests/' |
		awk -v name="$name" '{ all += $2; missed += $3; files++ }
			END { printf "%-18s %5.1f %% of %5d lines in %d files\n", name, all ? 100 * (all - missed) / all : 0, all, files }'
done
llvm-profdata merge -sparse -o "$out/all.prof" "$out"/*.raw
echo
lines "$out/all.prof" "${@/#/$BUILD/cover/fuzz_}" |
	awk '{ printf "%5.1f %% of %5d  %s\n", 100 * ($2 - $3) / $2, $2, $1 }' | sort -k 5
