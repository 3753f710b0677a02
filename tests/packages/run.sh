#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What can be said about the packages without installing them on a host: they
# build, lintian and systemd-analyze find nothing, pages render, shells complete, the rpm's root is right.
# Facts; 1 if one does not hold. The guests use the packages that are built here.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}
build=$(realpath "$BUILD")
packages=$build/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
log=$work/log

fact() { # STATUS TEXT, with what was found in $log
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		bad=1
		echo "not ok - $2"
		head -n 30 "$log" | sed 's/^/# /'
	fi
}

skip() { echo "skip - $1"; }

deb() {
	tests/packages/build.sh >"$log" 2>&1
	case $? in
	77)
		skip "the Debian packages: $(tail -n 1 "$log")"
		return
		;;
	0) fact 0 "the Debian packages build, and a next version of them" ;;
	*)
		fact 1 "the Debian packages build, and a next version of them"
		return
		;;
	esac
	if command -v lintian >/dev/null; then
		lintian --allow-root --fail-on error,warning "$packages"/this/*.changes >"$log" 2>&1
		fact $? "lintian finds nothing in source and packages"
	else
		skip "lintian: it is not installed"
	fi
	dpkg-deb -x "$packages"/this/otprof_*.deb "$work/root" && dpkg-deb -x "$packages"/this/otprof-dkms_*.deb "$work/root"
	dpkg-deb -f "$packages"/this/otprof_*.deb Version >"$log"
	"$work/root/usr/sbin/otprofd" --version | grep -qF "$(sed 's/-.*//' "$log")"
	fact $? "package and program have the Makefile's version"
	(cd "$work/root/usr/src/otprof-"*/ && grep -q "PACKAGE_VERSION=\"$(sed 's/-.*//' "$log")\"" dkms.conf && ls Kbuild kmod/uapi/otprof.h) >>"$log" 2>&1
	fact $? "the module's source says the same version, and holds the contract"
	for path in etc/otprof.conf etc/otprof.conf.d usr/lib/sysusers.d/otprof.conf usr/lib/tmpfiles.d/otprof.conf \
		usr/share/doc/otprof/examples/memory-max.conf usr/share/doc/otprof/examples/cpu-quota.conf \
		usr/share/doc/otprof/examples/otel-collector.yaml usr/share/doc/otprof/examples/pyroscope.yaml \
		usr/share/doc/otprof/README.md.gz usr/share/doc/otprof/SECURITY.md.gz; do
		[ -e "$work/root/$path" ]
		fact $? "the package holds /$path"
	done
	[ "$(dpkg-deb --ctrl-tarfile "$packages"/this/otprof_*.deb | tar -xO ./conffiles)" = /etc/otprof.conf ]
	fact $? "/etc/otprof.conf is a conffile, and the only one"
	"$work/root/usr/sbin/otprofd" -t -f "$work/root/etc/otprof.conf" >"$log" 2>&1
	fact $? "the configuration that is shipped is good"
}

# With the program's path as it is here: verify looks whether it is there.
unit() {
	command -v systemd-analyze >/dev/null || { skip "systemd-analyze: it is not installed"; return; }
	sed -e "s|@SBINDIR@|$build|; s|@SYSCONFDIR@|/etc|" packaging/systemd/otprofd.service.in >"$work/otprofd.service"
	systemd-analyze verify --man=no "$work/otprofd.service" >"$log" 2>&1 && [ ! -s "$log" ]
	fact $? "systemd-analyze verify finds nothing in the unit"
	mkdir -p "$work/otprofd.service.d"
	cp packaging/systemd/otprof-dkms.conf "$work/otprofd.service.d/"
	for example in packaging/examples/*.conf; do
		sed 's/^#\([A-Z][A-Za-z]*=\)/\1/' "$example" >"$work/otprofd.service.d/$(basename "$example")"
	done
	systemd-analyze verify --man=no "$work/otprofd.service" >"$log" 2>&1 && [ ! -s "$log" ]
	fact $? "nor with the module's drop-in and the examples"
	rm -r "$work/otprofd.service.d"
	if systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
		score=$(systemd-analyze security --offline=yes "$work/otprofd.service" 2>"$log" |
			sed -n 's/.*exposure level for otprofd.service: \([0-9.]*\).*/\1/p')
		[ -n "$score" ] && [ "$(echo "$score" | tr -d .)" -le 35 ]
		fact $? "systemd-analyze security: exposure ${score:-unknown}, 3.5 at most"
	fi
	newer_than_247
}

# Directives that systemd 247 (bullseye) does not know would do nothing there, silently.
newer_than_247() {
	grep -nE '^(ProcSubset|RestrictFileSystems|PrivateIPC|NoExecPaths|ExecPaths|ExitType|OpenFile|RestartSteps|RestartMaxDelaySec|ImportCredential|PrivatePIDs|StartupAllowedCPUs|ManagedOOM|MemoryKSM|ReloadSignal|ExtensionImages|LogFilterPatterns)=|Type=notify-reload|^ExecCondition' \
		packaging/systemd/otprofd.service.in >"$log"
	[ ! -s "$log" ]
	fact $? "the unit has no directive that systemd 247 lacks"
}

pages() {
	for page in otprofd.8 otprof.1 otprof.conf.5 otprof-kmod.4; do
		[ -e "packaging/man/$page" ] || { : >"$log"; fact 1 "man page $page is there"; continue; }
		command -v man >/dev/null || { skip "$page: man is not installed"; continue; }
		LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "packaging/man/$page" 2>"$log" >/dev/null && [ ! -s "$log" ]
		fact $? "man -l renders $page without a warning"
	done
}

# No engine here: what can be said is that it parses, and that the line grants what the unit does.
container() {
	for cap in $(sed -n 's/^CapabilityBoundingSet=//p' packaging/systemd/otprofd.service.in | sed 's/CAP_//g'); do
		grep -q -- "--cap-add=$cap " packaging/container/Dockerfile || echo "$cap"
	done >"$log"
	[ ! -s "$log" ]
	fact $? "the container's line grants the capabilities of the unit"
	for cap in $(sed -n 's/^CapabilityBoundingSet=//p' packaging/systemd/otprofd.service.in | sed 's/CAP_//g' | tr '[:upper:]' '[:lower:]'); do
		grep -q "^  capability $cap,$" packaging/container/apparmor || echo "$cap"
	done >"$log"
	[ ! -s "$log" ]
	fact $? "the AppArmor profile grants the capabilities of the unit"
	if command -v apparmor_parser >/dev/null; then
		apparmor_parser -Q -K packaging/container/apparmor >"$log" 2>&1
		fact $? "apparmor_parser reads the container's profile"
	else
		skip "the container's AppArmor profile: apparmor_parser is not installed"
	fi
	if command -v docker >/dev/null && docker buildx version >/dev/null 2>&1; then
		docker buildx build --check -f packaging/container/Dockerfile . >"$log" 2>&1
		fact $? "docker finds nothing in the Dockerfile"
	else
		skip "the container image is built: no docker here"
	fi
}

deb
unit
pages
container
for script in completions rpm; do
	"tests/packages/$script.sh"
	case $? in 0 | 77) ;; *) bad=1 ;; esac
done
exit $bad
