#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh VERSION RELEASE DIRECTORY: source and binary packages in DIRECTORY.
# Where rpm's own database does not know what is installed (Debian), build
# dependencies are the builder's care. RPM_AGAIN=1 packs what the last call
# compiled, under another release.
set -eu
# What the calling make was told (BUILD=...) is not for the package's own.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES BUILD DESTDIR PREFIX
version=$1 release=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
command -v rpmbuild >/dev/null || { echo "make rpm: no rpmbuild" >&2; exit 77; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "${RPM_AGAIN:-}" ] || again="--noprep"
[ -n "${again:-}" ] || rm -rf "$out/top" "$out"/*.rpm
mkdir -p "$out/top/SOURCES"
"$here/../sources.sh" "$out/top/SOURCES/otprof-$version"
tar -C "$out/top/SOURCES" --sort=name --mtime=@0 -cJf "$out/top/SOURCES/otprof-$version.tar.xz" "otprof-$version"
rm -r "$out/top/SOURCES/otprof-$version"
[ ! -e /etc/debian_version ] || nodeps=--nodeps
rpmbuild -ba --noclean ${again:-} ${nodeps:-} --define "_topdir $out/top" --define "_rpmdir $out" --define "_srcrpmdir $out" \
	--define "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
	--define "otprof_version $version" --define "otprof_release $release" "$here/otprof.spec"
