#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the chroot of the image, natively: builds the module as the guest will
# later, so that the compiler's cache knows it. Under emulation each of
# the three builds takes minutes otherwise. Nothing else of it stays.
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=/var/cache/ccache DEBIAN_FRONTEND=noninteractive
hook=$(dirname "$0")

build_all() {
	dpkg -i "$1"/otprof-dkms_*.deb
	version=$(dpkg-deb -f "$1"/otprof-dkms_*.deb Version | sed 's/-.*//')
	for modules in /lib/modules/*; do
		[ ! -e "$modules/build" ] || dkms build "otprof/$version" -k "${modules##*/}"
	done
}

dpkg --force-depends -i /var/debs/linux-headers-*.deb
build_all "$hook/this"
build_all "$hook/next"
dpkg -P otprof-dkms
for deb in /var/debs/linux-headers-*.deb; do
	dpkg --force-depends -P "$(dpkg-deb -f "$deb" Package)"
done
