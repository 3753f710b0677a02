// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a run of perf records, through the decoder into a process
 * table whose host knows nobody.
 */
#include <string.h>

#include "base/cleanup.h"
#include "process/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int nobody(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	fn(ctx, -ESRCH, -1, NULL, 0);
	return 0;
}

static void forget(struct host *h, void *ctx)
{
}

static void look(struct process_table *t, const struct proc_event *ev)
{
	struct otp_sample s = {.pid = ev->pid, .tid = ev->tid, .time_ns = ev->time_ns, .start_ns = ev->start,
			       .exec_id = ev->offset & 3, .cgroup_id = ev->end & 7};
	struct process *p = ev->pid & 1 ? table_find(t, &s) : table_peek(t, ev->pid);
	const struct mapping *m = p ? space_find(p->space, ev->start) : NULL;

	if (m)
		table_want_file(t, p, m);
	else if (p)
		table_uncovered(t, p, ev->start, ev->time_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct host_ops ops = {nobody, forget};
	struct host host = {&ops};
	struct process_table_config cfg = {.host = &host, .limits = {.processes = 64, .mappings = 1024}};
	struct process_table *t;
	struct proc_event ev;
	uint16_t size;

	if (table_new(&cfg, &t) < 0)
		return 0;
	while (len >= 8) {
		memcpy(&size, data + 6, sizeof(size));
		size = (uint16_t)MIN(MAX(size, 8), len);
		if (proc_event_decode(data, size, &ev) == 0) {
			table_apply(t, &ev);
			look(t, &ev);
			table_tick(t, ev.time_ns);
		}
		data += size;
		len -= size;
	}
	table_free(t);
	return 0;
}
