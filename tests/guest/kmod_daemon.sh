#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the whole daemon with the kernel module.
insmod /otprof.ko || exit 1
OTPROF_SOURCE=kmod /bin/daemon.sh
code=$?
rmmod otprof || { echo "not ok - the module unloads after the daemon"; code=1; }
exit $code
