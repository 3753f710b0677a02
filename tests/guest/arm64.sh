#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# arm64: builds the module, the eBPF object, otprofd and otprof for it, no
# warning allowed, and boots a Debian kernel in QEMU, where one program is
# profiled by eBPF and by the module.
#
#   arm64.sh [KERNEL...]    kernels to boot (6.1); the module is built for 5.10, 6.1 and 6.12
#
# 77 where nothing could be run.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(mkdir -p "${BUILD:-$top/build}" && cd "${BUILD:-$top/build}" && pwd)/arm64
CROSS=${CROSS:-aarch64-linux-gnu-}
export OTPROF_GUEST_ARCH=arm64
bad=0
mkdir -p "$build"
[ $# -gt 0 ] || set -- 6.1

fact() { # STATUS TEXT, with what was said in $build/log
	if [ "$1" = 0 ]; then
		echo "ok - arm64: $2"
	else
		bad=1
		echo "not ok - arm64: $2"
		grep -iE 'warning|error|undefined' "$build/log" | head -n 10 | sed 's/^/# /'
	fi
}

cannot() {
	echo "skip - arm64: $*"
	exit 77
}

# KERNEL: otprof.ko in $build/kmod-KERNEL. The kernel may have been built by a newer compiler than the
# one here, whose options it then names.
make_module() {
	local headers dir=$build/kmod-$1 code
	headers=$("$here/headers.sh" "$1" 2>"$build/log") || { echo "skip - arm64: module on $1: $(tail -n 1 "$build/log")"; return; }
	rm -rf "$dir" && mkdir -p "$dir" && cp -r "$top/Kbuild" "$top/kmod" "$dir/"
	make -C "$headers" M="$dir" ARCH=arm64 CROSS_COMPILE="$CROSS" CC="${CROSS}gcc" W=1 \
		CONFIG_DEBUG_INFO_BTF_MODULES= CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= modules >"$build/log" 2>&1
	code=$?
	! grep -qE '(^|/)kmod/[^:]*:[0-9]+:.*warning|WARNING: modpost' "$build/log" || code=1
	fact $code "the module builds for $1 without a warning"
}

cross_make() { # TARGET...
	PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig \
		make --no-print-directory -C "$top" -j"$(nproc)" BUILD="$build" CC="${CROSS}gcc --sysroot=$root" AR="${CROSS}ar" \
		BPF_ARCH=arm64 WERROR=1 "$@" >"$build/log" 2>&1
}

make_program() { # NAME FLAGS: the program with known shares
	"${CROSS}gcc" --sysroot="$root" -std=gnu11 -D_GNU_SOURCE -O2 -g -fomit-frame-pointer $2 \
		-o "$build/programs/$1" "$top/tests/programs/shares.c" >>"$build/log" 2>&1
}

# The shared libraries that FILEs name, and those name, into the guest's tree.
add_libraries() {
	local file name
	for file; do
		for name in $("${CROSS}readelf" -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
			[ ! -e "$guest/lib/$name" ] || continue
			cp -L "$(find "$root/lib" "$root/usr/lib" -name "$name" | head -n 1)" "$guest/lib/$name" || return 1
			add_libraries "$guest/lib/$name"
		done
	done
}

make_guest() {
	guest=$build/guest
	rm -rf "$guest"
	mkdir -p "$guest/bin" "$guest/lib"
	cp "$root/bin/busybox" "$guest/bin/"
	cp -L "$root/lib/ld-linux-aarch64.so.1" "$guest/lib/"
	add_libraries "$build/otprofd" "$build/otprof-worker" "$build/otprof" "$build/probe" "$build/programs/shares"
}

boot() { # KERNEL
	local code log=$build/boot-$1.log
	"$here/boot.sh" -k "$1" -i 2 -t "${OTPROF_GUEST_SECONDS:-600}" -M virtio_rng -r "$guest" "$here/arm64_guest.sh" \
		"$build/otprofd" "$build/otprof-worker" "$build/otprof" "$build/probe" "$build/programs/shares" "$build/programs/shares-signed" \
		"$build/kmod-$1/otprof.ko=/otprof.ko" >"$log" 2>&1
	code=$?
	sed -nE "s/^(ok|not ok|skip) - /\\1 - arm64 on $1: /p" "$log"
	[ $code != 0 ] || return
	[ $code != 77 ] || { echo "skip - arm64 on $1: $(tail -n 1 "$log")"; return; }
	bad=1
	grep -q '^not ok' "$log" || echo "not ok - arm64 on $1: the guest ended with $code"
	grep -aE '^#|complained|cut here|BUG|Oops' -A 1 "$log" | sed -E 's/^(ok|not ok|skip) - /# &/' | head -n 40
}

command -v "${CROSS}gcc" >/dev/null || cannot "no ${CROSS}gcc (Debian: gcc-aarch64-linux-gnu)"
for kernel in 5.10 6.1 6.12; do
	make_module $kernel
done
root=$("$here/arm64_root.sh" 2>"$build/log") || cannot "$(tail -n 1 "$build/log")"
mkdir -p "$build/programs"
cross_make all "$build/probe"
fact $? "eBPF object, otprofd and otprof build without a warning"
[ $bad = 0 ] || exit 1
make_program shares '' && make_program shares-signed -mbranch-protection=standard && make_guest
fact $? "a guest is made"
[ $bad = 0 ] || exit 1
for kernel; do
	boot "$kernel"
done
exit $bad
