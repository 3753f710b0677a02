#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh: the Debian packages of this tree, and those of a next version to
# upgrade to, in $BUILD/packages/this and .../next. What is there and not older
# than its sources is kept. The next version is this one with a higher
# number: only what holds the number is compiled again.
# 77 where packages cannot be built here.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
mkdir -p "$build/packages"
build=$(realpath "$build")/packages
log=$build/log
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
next=${version%.*}.$((${version##*.} + 1))
for tool in dpkg-buildpackage dh dh_dkms; do
	command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
unset MAKEFLAGS MFLAGS MAKEOVERRIDES DESTDIR PREFIX
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=${CHECK_CPUS:-$(nproc)} noautodbgsym}"

is_fresh() {
	[ -e "$build/stamp" ] && [ -z "$(find Kbuild Makefile LICENSES README.md ARCHITECTURE.md SECURITY.md bpf dkms.conf kmod packaging proto \
		userspace -newer "$build/stamp" -type f -not -name '*.pyc' -print -quit)" ]
}

build_next() {
	unset BUILD
	local tree=$build/next/otprof-$next
	mkdir -p "$build/next"
	cp -a "$build/this/otprof-$version" "$tree"
	cd "$tree"
	dh_clean
	sed "s/($version-1)/($next-1)/; s/Initial release/The next version/; s/2026 12:00:00/2026 13:00:00/" debian/changelog >debian/changelog.next
	{ cat debian/changelog.next; echo; cat debian/changelog; } >debian/changelog.both
	mv debian/changelog.both debian/changelog
	rm debian/changelog.next
	find build/obj -name '*.o' -exec grep -qF "$version" {} \; -delete
	dpkg-buildpackage -us -uc -b -nc
}

is_fresh && exit 0
rm -rf "$build/this" "$build/next" "$build/stamp"
touch "$build/stamp.new"
{ packaging/deb/build.sh "$version" 1 "$build/this" && (build_next); } >"$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
mv "$build/stamp.new" "$build/stamp"
