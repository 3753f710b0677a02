// SPDX-License-Identifier: GPL-2.0-only
/* 5.2: save_stack_trace with a plain array. */
#include <linux/stacktrace.h>
unsigned int probe(unsigned long *to);
unsigned int probe(unsigned long *to) { return stack_trace_save(to, 8, 0); }
