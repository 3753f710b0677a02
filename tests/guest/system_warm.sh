#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the chroot of the image, natively: what takes minutes under emulation and
# says nothing about the packages. Builds the module as the guest will later,
# so that the compiler's cache knows it; nothing else of that stays. The second
# kernel gets a package that has few modules and is not compressed, as
# depmod reads all of them with each build by DKMS, and an initrd.
set -u
# ccache looks at languages too.
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
hook=$(dirname "$0")
few='/kernel/(drivers/(virtio|block|char)|fs/(ext4|jbd2|autofs|fuse|configfs)|arch/x86/crypto|crypto|lib)/|/kernel/fs/mbcache'

# apt gives what it runs a PATH of its own.
add_compilers() {
	echo 'cache_dir = /var/cache/ccache' >/etc/ccache.conf
	echo "DPkg::Path \"$PATH\";" >/etc/apt/apt.conf.d/91compilers
	for compiler in /usr/bin/gcc /usr/bin/gcc-[0-9]* /usr/bin/x86_64-linux-gnu-gcc-[0-9]*; do
		[ ! -e "$compiler" ] || install -m 755 "$hook/system_cc.sh" "/usr/local/bin/${compiler##*/}"
	done
}

# Where DKMS itself would: its paths are in the objects.
build_all() { # DIRECTORY
	dpkg -i "$1"/otprof-dkms_*.deb
	version=$(dpkg-deb -f "$1"/otprof-dkms_*.deb Version | sed 's/-.*//')
	for modules in /lib/modules/*; do
		[ ! -e "$modules/build" ] || dkms build "otprof/$version" -k "${modules##*/}"
	done
}

# Its files must be here for it: they come with the package again.
make_initrd() { # UNPACKED
	modules=$(echo "$1"/usr/lib/modules/* "$1"/lib/modules/* | tr ' ' '\n' | grep -v '\*' | head -n 1)
	kernel=${modules##*/}
	mkdir -p "/lib/modules/$kernel"
	cp -r "$modules/." "/lib/modules/$kernel/"
	cp "$1"/boot/config-* /boot/
	depmod "$kernel"
	mkinitramfs -o /var/lib/second-initrd "$kernel"
	rm -r "/lib/modules/$kernel" "/boot/config-$kernel"
}

repack() { # DEB
	dpkg-deb -R "$1" "$hook/unpacked"
	find "$hook/unpacked" -name '*.ko*' | grep -vE "$few" | xargs -r rm
	[ ! -d "$hook/unpacked/boot" ] || make_initrd "$hook/unpacked"
	dpkg-deb -Znone -b "$hook/unpacked" "$1"
	rm -r "$hook/unpacked"
}

add_compilers
[ -z "$(ls /var/debs)" ] || dpkg --force-depends -i /var/debs/linux-headers-*.deb
build_all "$hook/this"
build_all "$hook/next"
dpkg -P otprof-dkms
# Where the image has its headers itself, that was all.
[ -n "$(ls /var/debs)" ] || exit 0
for deb in /var/debs/linux-headers-*.deb; do
	dpkg --force-depends -P "$(dpkg-deb -f "$deb" Package)"
done
for deb in /var/debs/*.deb; do
	repack "$deb"
done
