#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rpm packages: built, installed into an empty root, upgraded, removed;
# their files, modes, dependencies, and what their scriptlets call, which are
# recorders in that root. Facts; 77 where there is no rpmbuild or no root.
#
# It runs where rpm's database is empty (Debian): dependencies are read, not resolved.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
out=$build/packages/rpm
root=$out/root
bad=0
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
unset MAKEFLAGS MFLAGS MAKEOVERRIDES DESTDIR PREFIX
[ -z "${CHECK_CPUS:-}" ] || export RPM_BUILD_NCPUS=$CHECK_CPUS

fact() { # STATUS TEXT [FILE]
	if [ "$1" = 0 ]; then
		echo "ok - rpm: $2"
	else
		bad=1
		echo "not ok - rpm: $2"
		[ -z "${3:-}" ] || tail -n 15 "$3" | sed 's/^/# /'
	fi
}

command -v rpmbuild >/dev/null || { echo "skip - rpm: no rpmbuild"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skip - rpm: an empty root needs root"; exit 77; }
mkdir -p "$out"
log=$out/log
packaging/rpm/build.sh "$version" 1 "$out" >"$log" 2>&1
fact $? "both packages are built" "$log"
RPM_AGAIN=1 packaging/rpm/build.sh "$version" 2 "$out" >"$log" 2>&1
fact $? "and a next release of them" "$log"
arch=$(uname -m)
main=$out/otprof-$version-1.$arch.rpm dkms=$out/otprof-dkms-$version-1.noarch.rpm
main2=$out/otprof-$version-2.$arch.rpm dkms2=$out/otprof-dkms-$version-2.noarch.rpm

in_root() { rpm --root "$root" "$@" >"$log" 2>&1; }

# A shell, its tools, and programs that write down how they are called.
# dkms says that it has one version, the module counts as not loaded.
make_root() {
	rm -rf "$root"
	mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc,run,tmp,var/lib/rpm,proc,sys,dev}
	touch "$root/dev/null" # scriptlets redirect to it
	cp "$(command -v busybox)" "$root/bin/busybox"
	for applet in sh getent sed sort uname rm touch ls; do ln -s busybox "$root/bin/$applet"; done
	for program in useradd systemctl systemd-tmpfiles dkms modprobe; do
		printf '#!/bin/sh\necho "%s $*" >>/calls\n' $program >"$root/usr/bin/$program"
		chmod 755 "$root/usr/bin/$program"
	done
	echo "[ \"\$1\" != status ] || echo 'otprof/$version, 6.1.0, x86_64: installed'" >>"$root/usr/bin/dkms"
	rpm --root "$root" --initdb
}

called() { # PATTERN in the calls since they were last looked at
	grep -qE "$1" "$root/calls"
}

has() { # PATH MODE, by root
	[ "$(stat -c %a:%U:%G "$root$1" 2>/dev/null)" = "$2:root:root" ]
	fact $? "$1 is there, $2"
}

make_root
in_root -i --nodeps "$main" "$dkms"
fact $? "both install into an empty root" "$log"
while read -r path mode; do
	has "$path" "$mode"
done <<-FILES
	/etc/otprof.conf 644
	/etc/otprof.conf.d 755
	/var/lib/otprof 750
	/usr/sbin/otprofd 755
	/usr/libexec/otprof/otprof-worker 755
	/usr/bin/otprof 755
	/usr/lib/systemd/system/otprofd.service 644
	/usr/lib/systemd/system/otprofd.service.d/otprof-dkms.conf 644
	/usr/lib/sysusers.d/otprof.conf 644
	/usr/lib/tmpfiles.d/otprof.conf 644
	/usr/share/bash-completion/completions/otprof 644
	/usr/share/zsh/site-functions/_otprof 644
	/usr/share/fish/vendor_completions.d/otprof.fish 644
	/usr/share/doc/otprof/examples/memory-max.conf 644
	/usr/share/doc/otprof/examples/otel-collector.yaml 644
	/usr/src/otprof-$version/dkms.conf 644
	/usr/src/otprof-$version/Kbuild 644
	/usr/src/otprof-$version/kmod/main.c 644
FILES
for page in packaging/man/*.[1-8]; do
	page=$(basename "$page")
	[ -n "$(find "$root/usr/share/man/man${page##*.}" -name "$page*" 2>/dev/null)" ]
	fact $? "man page $page"
done
! rpm --root "$root" -V otprof otprof-dkms >"$log" 2>&1 || [ ! -s "$log" ]
fact $? "rpm -V finds nothing changed" "$log"
[ "$(rpm --root "$root" -qc otprof)" = /etc/otprof.conf ]
fact $? "the configuration is marked as such"
rpm -qp --qf '[%{FILEFLAGS:fflags} %{FILENAMES}\n]' "$main" | grep -q '^cn /etc/otprof.conf'
fact $? "and is not replaced"
[ -z "$(rpm -qp --qf '[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]' "$main" "$dkms" | grep -v '^root:root$')" ]
fact $? "all files belong to root"
! find "$root/usr" "$root/etc" -perm /6022 -not -type l | grep .
fact $? "nothing is setuid, or writable for others"

# Dependencies: each library that the programs load, and what scriptlets and module need.
rpm -qp --requires "$main" >"$log"
for library in $(objdump -p "$root/usr/sbin/otprofd" "$root/usr/libexec/otprof/otprof-worker" "$root/usr/bin/otprof" | sed -n 's/^ *NEEDED *//p' | sort -u); do
	grep -qF "$library" "$log"
	fact $? "requires $library" "$log"
done
grep -qx systemd "$log" && grep -qx shadow-utils "$log" && grep -qx /bin/sh "$log"
fact $? "requires what its scriptlets call" "$log"
rpm -qp --requires "$dkms" >"$log"
grep -q '^dkms >= ' "$log" && grep -qx kmod "$log"
fact $? "otprof-dkms requires dkms and kmod" "$log"
[ "$(rpm -qp --recommends "$dkms" | sort | tr '\n' ' ')" = "kernel-devel otprof = $version-1 " ]
fact $? "otprof-dkms recommends headers and the daemon"
[ "$(rpm -qp --qf '%{ARCH}' "$dkms")" = noarch ] && [ "$(rpm -qp --qf '%{ARCH}' "$main")" = "$arch" ]
fact $? "the module's source is for every architecture"

# Scriptlets.
called 'useradd .*otprof-engine' && called 'useradd .*otprof-net'
fact $? "installation makes a user for each worker" "$root/calls"
called 'systemd-tmpfiles --create otprof.conf' && called 'systemctl daemon-reload'
fact $? "installation makes directories and tells systemd" "$root/calls"
! called 'systemctl.*(enable|start)'
fact $? "installation starts nothing" "$root/calls"
called "dkms add -m otprof -v $version"
fact $? "installation gives the module to DKMS" "$root/calls"

echo '# mine' >>"$root/etc/otprof.conf"
: >"$root/calls"
in_root -U --nodeps "$main2" "$dkms2"
fact $? "the next release upgrades" "$log"
grep -q '^# mine' "$root/etc/otprof.conf"
fact $? "an upgrade keeps the configuration"
called 'systemctl try-restart otprofd.service' && ! called 'systemctl.*disable'
fact $? "an upgrade restarts what runs, and disables nothing" "$root/calls"
[ "$(grep -nE 'dkms (remove|add)' "$root/calls" | sed 's/.*dkms \([a-z]*\).*/\1/' | tr '\n' ' ')" = "remove add " ]
fact $? "an upgrade takes the old module from DKMS before it adds the new one" "$root/calls"

: >"$root/calls"
in_root -e otprof-dkms
fact $? "otprof-dkms is removed" "$log"
called "dkms remove -m otprof -v $version --all"
fact $? "removal takes the module from DKMS" "$root/calls"
in_root -e otprof
fact $? "otprof is removed" "$log"
called 'systemctl .*disable --now otprofd.service'
fact $? "removal stops and disables the service" "$root/calls"
left=$(find "$root" -name '*otprof*' -not -path "$root/etc/otprof.conf.rpmsave" -not -path "$root/var/lib/rpm/*")
[ -z "$left" ] && [ -e "$root/etc/otprof.conf.rpmsave" ]
fact $? "only the changed configuration stays, as .rpmsave ${left:+(and $left)}"
rm -rf "$root" "$out/top"
exit $bad
