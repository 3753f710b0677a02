#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh VERSION REVISION DIRECTORY: the Debian source package and what is
# built from it, in DIRECTORY. debian/ is made here from packaging/deb, with
# the version that the Makefile has. DEB_BUILD=binary leaves the source package out.
set -eu
# What the calling make was told (BUILD=...) is not for the package's own.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES BUILD DESTDIR PREFIX
version=$1 revision=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-buildpackage >/dev/null || { echo "make deb: no dpkg-buildpackage (package dpkg-dev)" >&2; exit 77; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
tree=$out/otprof-$version
rm -rf "$tree" "$out"/otprof*_"$version"*
"$here/../sources.sh" "$tree"
[ "${DEB_BUILD:-full}" = binary ] ||
	tar -C "$out" --sort=name --mtime=@0 -cJf "$out/otprof_$version.orig.tar.xz" "otprof-$version"
cp -r "$here" "$tree/debian"
rm "$tree/debian/build.sh"
sed -i "s/@VERSION@/$version-$revision/" "$tree/debian/changelog"
cd "$tree"
if [ "${DEB_BUILD:-full}" = binary ]; then
	dpkg-buildpackage -us -uc -b
else
	dpkg-buildpackage -us -uc
fi
