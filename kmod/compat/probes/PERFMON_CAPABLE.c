// SPDX-License-Identifier: GPL-2.0-only
/* 5.8: CAP_PERFMON. */
#include <linux/capability.h>
int probe(void);
int probe(void) { return perfmon_capable(); }
