// SPDX-License-Identifier: GPL-2.0-only
/* 5.4, and -rt before: timers that expire in hard interrupts on -rt too. */
#include <linux/hrtimer.h>
int probe(void);
int probe(void) { return HRTIMER_MODE_ABS_PINNED_HARD; }
