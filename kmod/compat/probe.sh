#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# probe.sh DIRECTORY RELEASE COMPILER FLAGS...: prints -DOTPROF_HAVE_<NAME> for
# every DIRECTORY/probes/<NAME>.c that compiles.
here=$1
shift
answers=$here/.answers
key=$({ echo "$*" && cat "$here"/probes/*.c; } | cksum)
shift
if [ -r "$answers" ] && [ "$(sed -n 1p "$answers")" = "$key" ]; then
	sed -n 2p "$answers"
	exit
fi
found=
for probe in "$here"/probes/*.c; do
	name=$(basename "$probe" .c)
	if "$@" -DMODULE -DKBUILD_BASENAME='"probe"' -DKBUILD_MODNAME='"probe"' -D__KBUILD_MODNAME=kmod_probe \
		-Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
		-c -o "$answers.o" "$probe" >"$answers.$name.log" 2>&1; then
		found="$found -DOTPROF_HAVE_$name"
		rm -f "$answers.$name.log"
	fi
done
rm -f "$answers.o"
printf '%s\n%s\n' "$key" "$found" >"$answers" 2>/dev/null
echo "$found"
