#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest, after multi-user.target: runs the test that lies on the second
# disk with the number of this boot, says its exit code, powers off.
count=/var/lib/guest-boots
boot=$(($(cat $count 2>/dev/null || echo 0) + 1))
echo $boot >$count
export HOME=/root LC_ALL=C.UTF-8
if mount -o ro /dev/vdb /files && cd /files; then
	sh /files/test $boot </dev/null
	echo "guest-exit: $?"
fi
cd /
systemctl --no-block poweroff
