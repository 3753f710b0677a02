// SPDX-License-Identifier: GPL-2.0-only
/* 4.9: boot time without a lock. */
#include <linux/ktime.h>
#include <linux/timekeeping.h>
u64 probe(void);
u64 probe(void) { return ktime_get_boot_fast_ns(); }
