// SPDX-License-Identifier: GPL-2.0-only
/* With CONFIG_PERF_EVENTS: counters of the kernel's own. */
#include <linux/perf_event.h>
struct perf_event *probe(struct perf_event_attr *a, perf_overflow_handler_t fn);
struct perf_event *probe(struct perf_event_attr *a, perf_overflow_handler_t fn)
{
	return perf_event_create_kernel_counter(a, 0, NULL, fn, NULL);
}
