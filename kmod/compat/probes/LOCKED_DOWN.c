// SPDX-License-Identifier: GPL-2.0-only
/* 5.4: lockdown, exported to modules from the start (security/security.c). */
#include <linux/security.h>
int probe(void);
int probe(void) { return security_locked_down(LOCKDOWN_PERF); }
