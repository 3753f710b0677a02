// SPDX-License-Identifier: Apache-2.0
/* Requests all processes of /proc from the host at once, and merges the answer. */
#include <string.h>

#include "base/file.h"
#include "process/table_internal.h"

#define SCAN_ENTRIES_MAX 65536
/*
 * Processes read per second where the kernel does not report process life, at
 * some 150 us each: new ones come first, as pids rise, and a thousand take half
 * a minute. A process that is sampled before its turn is requested by itself;
 * an exec shows in the sample's exec_id, new code by a pc without a mapping. A
 * process that ends before its first sample is handled stays unnamed.
 */
#define SCAN_SOME 32

/* The answer, read entry by entry, as its size depends on the host's number of processes. */
struct scan {
	struct process_table *t;
	uint64_t asked_ns;
	int fd;
	uint64_t at;
	uint8_t *data; /* owned: identity and maps of one process */
	size_t cap;
};

static bool scan_read(const struct scan *s, void *to, size_t len)
{
	return file_read_at(s->fd, to, len, s->at) == 0;
}

static bool scan_reserve(struct scan *s, size_t len)
{
	uint8_t *data;

	if (len <= s->cap)
		return true;
	data = realloc(s->data, len);
	if (!data)
		return false;
	s->data = data;
	s->cap = len;
	return true;
}

static bool scan_read_entry(struct scan *s, struct host_scan_entry *head)
{
	size_t len;

	if (!scan_read(s, head, sizeof(*head)) || head->identity_len > HOST_IDENTITY_MAX + sizeof(struct host_identity_text) ||
	    head->maps_len > HOST_MAPS_MAX)
		return false;
	len = (size_t)head->identity_len + head->maps_len;
	s->at += sizeof(*head);
	if (!scan_reserve(s, len) || !scan_read(s, s->data, len))
		return false;
	s->at = ALIGN_UP(s->at + len, (uint64_t)8);
	return true;
}

/* The field Name of the status text, which is comm. */
static void scan_set_name(struct entry *e, const uint8_t *identity, size_t len)
{
	static const char field[] = "Name:\t";
	struct host_identity_text head;
	size_t at = sizeof(head);
	const char *name, *end;

	if (len < at)
		return;
	memcpy(&head, identity, sizeof(head));
	for (int i = 0; i < HOST_TEXT_STATUS; i++)
		at += head.len[i];
	if (at > len || head.len[HOST_TEXT_STATUS] > len - at)
		return;
	e->p.ppid = head.ppid;
	name = (const char *)identity + at;
	len = head.len[HOST_TEXT_STATUS];
	if (len < sizeof(field) || memcmp(name, field, sizeof(field) - 1) != 0)
		return;
	end = memchr(name, '\n', len);
	if (end)
		entry_set_comm(e, name + sizeof(field) - 1, (size_t)(end - name) - (sizeof(field) - 1));
}

/* Side-band records since the request are newer, and take precedence. */
static void scan_merge(struct scan *s, const struct host_scan_entry *head)
{
	struct process_table *t = s->t;
	struct entry *e = entry_get(t, head->pid);

	if (!e && t->by_pid.count >= t->cfg.limits.processes)
		return;
	if (!e)
		e = entry_new(t, head->pid);
	if (!e || e->p.exec_time_ns > s->asked_ns)
		return;
	if (!e->p.comm)
		scan_set_name(e, s->data, head->identity_len);
	/* Another process has this pid by now: the maps are not the entry's either. */
	if (!e->p.identity_known && identity_take(t, e, s->data, head->identity_len) == -ESRCH)
		return;
	if (!e->p.kernel && head->maps_len)
		maps_take(t, e, (const char *)s->data + head->identity_len, head->maps_len);
}

static void scan_end(struct process_table *t)
{
	t->scan = NULL;
	map_for_each(&t->by_pid, slot) {
		struct entry *e = (struct entry *)(uintptr_t)slot->value;

		if (!e->maps_question)
			maps_forget_newer(e);
	}
}

static void scan_on_answer(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct question *q = ctx;
	_cleanup_(closep) int own = fd;
	struct scan s = {.t = q->t, .asked_ns = q->asked_ns, .fd = own};
	struct host_scan_entry head;

	question_free(q);
	/* After the last process, the next scan begins with the first. */
	s.t->scan_from = 0;
	for (int i = 0; err == 0 && own >= 0 && i < SCAN_ENTRIES_MAX && scan_read_entry(&s, &head); i++) {
		s.t->scan_from = head.pid;
		if (head.pid)
			scan_merge(&s, &head);
	}
	free(s.data);
	scan_end(s.t);
}

static int scan_request(struct process_table *t, uint32_t pid, uint32_t nr)
{
	struct host_request req = {.kind = HOST_SCAN, .pid = pid, .len = nr};
	struct question *q;
	int r;

	if (t->scan)
		return 0;
	r = question_new(t, NULL, &q);
	if (r < 0)
		return r;
	t->scan = q;
	r = host_ask(t->cfg.host, &req, scan_on_answer, q);
	if (r < 0) {
		question_free(q);
		t->scan = NULL;
	}
	return r;
}

int table_scan(struct process_table *t)
{
	return scan_request(t, 0, 0);
}

int table_scan_some(struct process_table *t)
{
	return scan_request(t, t->scan_from, SCAN_SOME);
}
