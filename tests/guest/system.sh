#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The packages in whole Debian systems, from apt install to purge: system_test.sh
# in Debian 12 and 13, each in two boots and on two kernels; and as a service of
# Debian 11, on its kernel, 5.10. All at a time.
#
#   system.sh [11|12|13]...
#
# Debian 11's C library is older than the one that the packages are made with:
# there the programs bring their own along, with a loader and search path of theirs.
# Lines are facts. 1 where one does not hold, 77 where no guest could be run.
# OTPROF_GUEST_SECONDS: for each guest (1500).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
build=$(realpath "${BUILD:-build}")
packages=$build/packages
[ $# -gt 0 ] || set -- 11 12 13
declare -A suites=([11]=bullseye [12]=bookworm [13]=trixie)
kernel="linux-image-@newest linux-headers-@newest"
brought=/opt/otprof # where the guest has the libraries that are brought along

skip_all() {
	echo "skip - packages in whole systems: $1"
	exit 77
}

# Names of what the packages depend on; the guest has no network to get it from.
depends() {
	dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g' | sort -u | tr '\n' ' '
}

# What the guest's sink stored, in the order of its arrival, over both boots: read here, where that is quick.
# One whose answer came too late is there twice, byte for byte: over HTTP, delivery is at least once.
requests() { # RELEASE
	local sink=$work/sink-$1 n
	mkdir "$sink"
	PATH=$PATH:/usr/sbin:/sbin debugfs -R "rdump /var/lib/sink $sink" "$work/disk-$1" >/dev/null 2>&1
	find "$sink" -name '*.otlp' | sort | xargs -r sha256sum | awk 'seen[$1]++ { print $2 }' | xargs -r rm
	n=$(find "$sink" -name '*.otlp' | wc -l)
	if [ "$n" -gt 0 ] && python3 -B tests/lib/otlp_check.py "$sink/sink" >/dev/null 2>"$sink.bad"; then
		echo "ok - Debian $1: not one of $n requests breaks the data model"
	else
		echo "not ok - Debian $1: not one of $n requests breaks the data model"
		sed 's/^/# /' "$sink.bad"
		return 1
	fi
}

# Headers and DKMS are in Debian 11's image; in the others the guest installs them.
image_of() { # RELEASE
	local warm="$here/system_warm.sh $here/system_cc.sh $work/this $work/next"
	if [ "$1" = 11 ]; then
		# shellcheck disable=SC2086 # two names
		"$here/image.sh" -x "$warm" "${suites[$1]}" $kernel dkms gcc make ccache python3
		return
	fi
	# shellcheck disable=SC2046 # a list of names
	"$here/image.sh" -d "$kernel" -x "$warm" "${suites[$1]}" linux-image-@previous python3 ccache \
		$(depends "$packages"/this/otprof_*.deb) $(depends "$packages"/this/otprof-dkms_*.deb)
}

# The programs with loader and libraries in $brought, all of which the guest copies there.
bring_libraries() {
	make -s -j"${CHECK_CPUS:-2}" BUILD="$build/brought" \
		LDFLAGS="-Wl,--dynamic-linker=$brought/ld.so -Wl,--disable-new-dtags -Wl,-rpath,$brought" \
		"$build/brought/otprofd" "$build/brought/otprof" >"$build/brought.log" 2>&1 || return 1
	mkdir -p "$work/brought"
	cp "$build/brought/otprofd" "$build/brought/otprof-worker" "$build/brought/otprof" "$work/brought/"
	ldd "$build/otprofd" "$build/otprof-worker" "$build/otprof" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | sort -u | xargs cp -L -t "$work/brought"
	cp -L /lib64/ld-linux-x86-64.so.2 "$work/brought/ld.so"
}

guest() { # RELEASE
	local image log=$build/guest-debian-$1.log code began=$SECONDS files=("$build/programs/shares")
	image=$(image_of "$1" 2>"$log") || { echo "skip - Debian $1: $(tail -n 1 "$log")"; return 77; }
	if [ "$1" = 11 ]; then
		bring_libraries || { echo "not ok - Debian $1: programs with libraries of their own are built"; return 1; }
		files=("$build/programs/shares-static=shares" "$work/brought=brought")
	fi
	# One CPU: two that share a thread of the emulator only wait for each other.
	"$here/image_boot.sh" -t "${OTPROF_GUEST_SECONDS:-1500}" -c 1 -a mitigations=off -d "$work/disk-$1" -o "$log" \
		"$image" "$here/system_test.sh" "${files[@]}" tests/lib/sink.py "$image/debs" "$image/newest" \
		"$work/this=this" "$work/next=next" >/dev/null 2>"$log.err"
	code=$?
	sed -nE "s/^(ok|not ok|skip) - /\\1 - Debian $1: /p" "$log"
	sed -n "s/^# time/# Debian $1:/p" "$log"
	[ $code = 77 ] || requests "$1" || [ $code != 0 ] || code=1
	if [ $code = 77 ]; then
		echo "skip - Debian $1: $(tail -n 1 "$log.err")"
	elif [ $code != 0 ]; then
		grep -q '^not ok' "$log" || echo "not ok - Debian $1: the guest ended with $code"
		cat "$log.err"
		grep -aE '^(#|not ok)' "$log" | sed -E 's/^(ok|not ok|skip) - /# &/' | tail -n 60
	fi
	echo "# Debian $1 took $((SECONDS - began)) s"
	return $code
}

why=$(BUILD=$build tests/packages/build.sh 2>&1) || {
	[ $? != 77 ] || skip_all "$why"
	printf 'not ok - the packages are built\n%s\n' "$why"
	exit 1
}
# What the image's making and the guest see of the packages: not the trees that they were built in.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for which in this next; do
	mkdir "$work/$which" && cp "$packages/$which"/*.deb "$work/$which/"
done
declare -A pids=()
for release; do
	guest "$release" >"$build/system-$release.out" 2>&1 &
	pids[$release]=$!
done
bad=0 ran=0
for release; do
	wait "${pids[$release]}"
	case $? in 0) ran=1 ;; 77) ;; *) ran=1 bad=1 ;; esac
	cat "$build/system-$release.out"
done
[ $bad = 0 ] || exit 1
[ $ran = 1 ] || exit 77
