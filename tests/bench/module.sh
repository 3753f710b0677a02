#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Boots a Debian kernel, where the module and the eBPF sampler are compared.
# The guest's time goes by instructions, 4 ns each: what it says is no figure of a
# real machine, but the same in each run, and nothing else on the host is in it.
#   module.sh BUILD [KERNEL]      77 and a reason where that cannot be
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1 kernel=${2:-6.1}
"$here/../guest/module.sh" "$kernel" "$build/bench-kmod" >&2
"$here/../guest/boot.sh" -k "$kernel" -i 2 -t 500 "$here/module_guest.sh" "$build/otprofd" "$build/otprof-worker" "$build/otprof" \
	"$build/programs/depth" "$build/bench-kmod/otprof.ko=/otprof.ko"
