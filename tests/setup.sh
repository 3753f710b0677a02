#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that a target needs and that are missing:
#   setup.sh run | check | full | bench
# Debian 12 and 13, as root, without questions. Runs before anything else is
# there, so it needs only a base system. Services that come with a package
# (redis, nginx) are not started: the tests start their own.
set -eu

BUILD_PACKAGES="gcc libc6-dev clang make pkg-config bpftool libbpf-dev libelf-dev
	libdw-dev liblzma-dev libzstd-dev
	libiberty-dev protobuf-c-compiler libprotobuf-c-dev protobuf-compiler
	libcurl4-openssl-dev libmicrohttpd-dev libinih-dev libsystemd-dev libcap-dev
	libacl1-dev libseccomp-dev libjansson-dev libncurses-dev zlib1g-dev ca-certificates"
CHECK_PACKAGES="check libnghttp2-dev python3 python3-pip python3-grpcio python3-yaml python3-jsonschema openssl curl libcap2-bin procps util-linux
	qemu-system-x86 qemu-system-arm busybox-static cpio kmod xz-utils zstd binutils gdb
	gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	redis-server redis-tools nginx wrk mono-mcs ruby php-cli perl luajit lua5.1 lua5.2 lua5.3 lua5.4 shellcheck dwz elfutils llvm sparse g++ musl-tools
	golang-go dpkg-dev debhelper dh-dkms lintian rpm man-db zsh fish debootstrap e2fsprogs chromium"
FULL_PACKAGES="spin flex bison bc libssl-dev"
BENCH_PACKAGES="linux-perf"

say() { echo "setup: $*"; }

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
	for p in "$@"; do
		installed "$p" || printf '%s ' "$p"
	done
}

# clang's sanitizer and fuzzer runtimes are in a package named after clang's
# version, which is known once apt has its lists.
have_clang_runtime() {
	ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1
}
clang_runtime() {
	version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/\1/p' | head -n 1)
	[ -z "$version" ] || echo "libclang-rt-$version-dev"
}

# The page's tests: any node will do, also one that is no package.
have_node() {
	command -v node >/dev/null && command -v npm >/dev/null
}

# apt's own progress, as one line that moves on a terminal and as a few lines in a log.
progress() {
	last=-1
	while IFS=: read -r kind package percent _; do
		[ "$kind" = pmstatus ] || [ "$kind" = dlstatus ] || continue
		whole=${percent%%.*}
		case $whole in '' | *[!0-9]*) continue ;; esac
		[ "$kind" = pmstatus ] && verb=installing || { verb=fetching; package=; }
		if [ -t 1 ]; then
			printf '\rsetup: %s %3d %% %-40.40s' "$verb" "$whole" "$package"
		elif [ "$((whole / 25))" != "$last" ]; then
			last=$((whole / 25))
			say "$verb $whole %"
		fi
	done
	[ ! -t 1 ] || printf '\r%-60s\r' ''
}

forbid_service_starts() {
	policy=/usr/sbin/policy-rc.d
	[ ! -e $policy ] || return 0
	trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	trap 'exit 130' INT TERM
	printf '#!/bin/sh\nexit 101\n' > $policy
	chmod 755 $policy
}

apt() {
	DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -y -q -o DPkg::Lock::Timeout=600 \
		-o Dpkg::Use-Pty=0 -o APT::Status-Fd=3 "$@" 3>&1 >>"$log" 2>&1 </dev/null | progress
}

case ${1:-} in
run) wanted=$BUILD_PACKAGES ;;
check) wanted="$BUILD_PACKAGES $CHECK_PACKAGES" ;;
full) wanted="$BUILD_PACKAGES $CHECK_PACKAGES $FULL_PACKAGES" ;;
bench) wanted="$BUILD_PACKAGES $CHECK_PACKAGES $BENCH_PACKAGES" ;;
*)
	echo "usage: setup.sh run|check|full|bench" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	say "this is no Debian: install what these packages hold, then run make all"
	# shellcheck disable=SC2086
	printf '  %s\n' $wanted
	exit 0
fi

# shellcheck disable=SC2086
missing=$(missing_of $wanted)
[ "$1" = run ] || have_clang_runtime || missing="$missing clang-runtime"
[ "$1" = run ] || have_node || missing="$missing nodejs npm"
[ "$1" = run ] || command -v erlc >/dev/null || missing="$missing erlang-base"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	say "missing: $missing"
	say "install them, or let this do it: sudo make $([ "$1" = full ] && echo check-full || echo "$1")"
	exit 1
fi

log=$(mktemp /tmp/otprof-setup.XXXXXX)
forbid_service_starts
say "looking for $(echo "$missing" | wc -w) packages"
# An unreachable third-party source must not stop us; a missing package will.
apt update || say "apt-get update had errors (see $log); going on"
missing=$(echo "$missing" | sed "s/clang-runtime/$(clang_runtime)/")
# shellcheck disable=SC2086
apt --no-install-recommends install $missing || true
# shellcheck disable=SC2086
still=$(missing_of $missing)
if [ -n "$still" ]; then
	tail -n 20 "$log" >&2
	say "not installed: $still(log: $log)"
	exit 1
fi
rm -f "$log"
say "done"
