#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The module on a kernel that Debian no longer has: builds it against that
# kernel, boots, and runs what kmod_run.sh runs.
#
#   KERNEL_BUILD=DIRECTORY old_kernel.sh
#
# DIRECTORY is a kernel's build directory (x86-64) in which bzImage and modules
# are made: its .config, Module.symvers and arch/x86/boot/bzImage. The kernel
# needs what debug_kernel.sh asks for as `common`, and MODULES above all.
# Without KERNEL_BUILD it is skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cannot() {
	echo "skip - module on an old kernel: $*"
	exit 77
}

[ -n "${KERNEL_BUILD:-}" ] || cannot "no KERNEL_BUILD=DIRECTORY was given, and Debian's archive begins with 5.10"
image=$KERNEL_BUILD/arch/x86/boot/bzImage
[ -e "$image" ] || cannot "no $image"
version=$(cat "$KERNEL_BUILD/include/config/kernel.release")
there=$(mkdir -p "${BUILD:-$top/build}" && cd "${BUILD:-$top/build}" && pwd)/old-$version
mkdir -p "$there/root"
ln -sfn "$(cd "$KERNEL_BUILD" && pwd)" "$there/build"
cp "$image" "$there/vmlinuz"
echo "$version" >"$there/version"
exec "$here/kmod_run.sh" "$there"
