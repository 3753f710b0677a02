#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's first process: mounts what a system has, runs /script, shows what
# the kernel had to say and stops the machine.

# Services run in a memory cgroup, so the tests do as well: memory that they allocate and map is charged to it. The
# cgroup is of version 2 where the kernel has that controller, else of version 1. It is not named as a unit, so
# otprofd finds no service in its name.
enter_memory_cgroup() {
	group=/sys/fs/cgroup/guest
	if ! echo +memory >/sys/fs/cgroup/cgroup.subtree_control; then
		mkdir -p /run/cgroup-memory
		mount -t cgroup -o memory none /run/cgroup-memory
		group=/run/cgroup-memory/guest
	fi
	mkdir "$group" && echo $$ >"$group/cgroup.procs" && [ -e "$group/memory.stat" ] ||
		echo "skip - the guest runs in a memory cgroup: this kernel has no such controller"
} 2>/dev/null

export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root OTPROF_GUEST=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
[ "${OTPROF_MEMCG:-yes}" = no ] || enter_memory_cgroup
ln -sf /proc/self/fd /dev/fd
hostname guest
ip link set lo up 2>/dev/null
while read -r module; do
	insmod "/modules/$module.ko" || echo "init: module $module: not loaded"
done 2>/dev/null </modules.list
/script </dev/null
code=$?
# Warnings of the kernel, and what is worse, for the one who looks through the console.
dmesg -r | sed -n 's/^<[0-4]>//p'
sync
echo "guest-exit: $code"
reboot -f
