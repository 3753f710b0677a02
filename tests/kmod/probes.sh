#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every compile probe where its answer is yes and where it is no, and what
# depends on it compiled under both; and kernels that are too old. The kernel
# is a made-up one (fake_kernel.h) that has what a probe asks for, or has not.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
compat=$top/kmod/compat
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

fact() { # STATUS TEXT
	if [ "$1" = 0 ]; then echo "ok - probes: $2"; else bad=1 && echo "not ok - probes: $2"; fi
}

# Headers that are there only in kernels where one of these answers is yes.
header_of() { # PROBE
	case $1 in
	SCHED_HEADERS) echo linux/sched/signal.h linux/sched/task_stack.h ;;
	FSBASE_READ) echo asm/fsgsbase.h ;;
	UNWIND_START) echo asm/unwind.h ;;
	MMAP_LOCK) echo linux/mmap_lock.h ;;
	esac
}

names=$(for probe in "$compat"/probes/*.c; do basename "$probe" .c; done)
included=$(cat "$compat"/probes/*.c "$compat"/*.[ch] | sed -n 's/^#include <\(.*\)>.*/\1/p' | sort -u)
optional=" $(for name in $names; do header_of "$name"; done | tr '\n' ' ')"

# Headers of a kernel in which the answer to PROBEs is yes; prints the flags to compile against it.
kernel_with() { # DIRECTORY PROBE...
	local headers=$1 header name
	shift
	for header in $included; do
		case $optional in *" $header "*) continue ;; esac
		mkdir -p "$headers/$(dirname "$header")"
		echo '#include "tests/kmod/fake_kernel.h"' >"$headers/$header"
	done
	for name; do
		for header in $(header_of "$name"); do
			mkdir -p "$headers/$(dirname "$header")"
			echo '#include "tests/kmod/fake_kernel.h"' >"$headers/$header"
		done
		printf ' -DFAKE_%s' "$name"
	done
	printf ' -I%s -I%s' "$headers" "$top"
}

# A copy, so that no answer is kept from one kernel to the next. The compiler is told of no header but ours.
answers() { # FLAGS: names that were found, in order
	rm -rf "$work/compat" && mkdir "$work/compat" && cp -r "$compat/probes" "$compat/probe.sh" "$work/compat/"
	# shellcheck disable=SC2086
	"$work/compat/probe.sh" "$work/compat" fake gcc $arch -std=gnu11 -nostdinc \
		-isystem "$(gcc -print-file-name=include)" -ffreestanding -Wall $1 |
		tr ' ' '\n' | sed -n 's/^-DOTPROF_HAVE_//p' | sort | tr '\n' ' '
}

have() { printf ' -DOTPROF_HAVE_%s' "$@"; }

# What asks for the answers: the header, and what stands beside it.
compiles() { # FLAGS
	local file
	echo '#include "kmod/compat/compat.h"' >"$work/header.c"
	for file in "$work/header.c" "$compat"/*.c; do
		# shellcheck disable=SC2086
		gcc $arch -std=gnu11 -nostdinc -isystem "$(gcc -print-file-name=include)" -ffreestanding -Wall -Wextra \
			-Wno-unused-parameter -Werror $1 -c -o "$work/o" "$file" 2>"$work/log" || return 1
	done
}

without() { # NAME: all others
	for name in $names; do
		[ "$name" = "$1" ] || echo "$name"
	done
}

sorted() { printf '%s\n' "$@" | sort | tr '\n' ' '; }

expect() { # TEXT NAME...: a kernel that has these, and nothing else
	local text=$1 flags found
	shift
	flags=$(kernel_with "$work/headers" "$@")
	found=$(answers "$flags")
	[ "${found% }" = "$([ $# = 0 ] || sorted "$@" | sed 's/ $//')" ]
	fact $? "$text"
	# shellcheck disable=SC2046
	compiles "$flags $([ $# = 0 ] || have "$@")" || { sed 's/^/# /' "$work/log" | head -n 5; false; }
	fact $? "$text: compat compiles"
	rm -rf "$work/headers"
}

for arch in -DCONFIG_X86_64 -DCONFIG_ARM64; do
	on=${arch#-DCONFIG_}
	# shellcheck disable=SC2086
	expect "$on: a kernel that has everything" $names
	expect "$on: a kernel that has nothing"
done
arch=-DCONFIG_X86_64
for name in $names; do
	expect "$name alone is yes" "$name"
	# shellcheck disable=SC2046
	expect "$name alone is no" $(without "$name")
done

# Answers are kept, but not beyond the question: a directory may be built in again, by a newer version.
flags=$(kernel_with "$work/headers" CPUS_READ_LOCK)
answers "$flags" >/dev/null
kept=$(sed -n 2p "$work/compat/.answers")
sed -i 's/cpus_read_lock()/cpus_read_lock_of_old()/' "$work/compat/probes/CPUS_READ_LOCK.c"
ask_again() {
	# shellcheck disable=SC2086
	"$work/compat/probe.sh" "$work/compat" fake gcc $arch -std=gnu11 -nostdinc \
		-isystem "$(gcc -print-file-name=include)" -ffreestanding -Wall $flags
}
[ "$kept" = " $(have CPUS_READ_LOCK | sed 's/^ //')" ] && [ -z "$(ask_again)" ]
fact $? "answers are not kept for another question"
rm -rf "$work/headers"

# A cgroup's directory is known to userspace by its inode, and its id in between had a generation above that.
cat >"$work/cgroup.c" <<'C'
#include "kmod/compat/compat.h"
int main(void)
{
	struct kernfs_node kn = { .id = { .ino = 7, .generation = 1 } };
	struct cgroup cgroup = { .kn = &kn };

	return otprof_compat_cgroup_id(&cgroup) != 7;
}
C
flags=$(kernel_with "$work/headers" KN_ID_UNION)
# shellcheck disable=SC2046,SC2086
gcc $arch -std=gnu11 -nostdinc -isystem "$(gcc -print-file-name=include)" -ffreestanding $flags $(have KN_ID_UNION) \
	-o "$work/cgroup" "$work/cgroup.c" && "$work/cgroup"
fact $? "the id of a cgroup is its directory's inode"
rm -rf "$work/headers"

# In words, where the module is built.
flags=$(kernel_with "$work/headers")
! compiles "$flags -DLINUX_VERSION_CODE=0x0403ff" && grep -q 'otprof needs Linux 4.4 or later' "$work/log"
fact $? "a build for Linux 4.3 is refused in words"
! compiles "$flags -DCONFIG_PREEMPT_RT_FULL" && grep -q 'needs timers that expire in hard interrupts' "$work/log"
fact $? "a build for an -rt kernel without timers in hard interrupts is refused in words"
arch=-DCONFIG_X86_32
! compiles "$flags" && grep -q 'otprof knows x86-64 and arm64 only' "$work/log"
fact $? "a build for another architecture is refused in words"
exit $bad
