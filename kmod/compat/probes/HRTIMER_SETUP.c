// SPDX-License-Identifier: GPL-2.0-only
/* 6.13: hrtimer_setup takes the function along; hrtimer_init is gone in 6.15. */
#include <linux/hrtimer.h>
static enum hrtimer_restart fn(struct hrtimer *t) { return HRTIMER_NORESTART; }
void probe(struct hrtimer *t);
void probe(struct hrtimer *t) { hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED); }
