// SPDX-License-Identifier: Apache-2.0
#include "process/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

/* PERF_RECORD_MISC_MMAP_BUILD_ID, Linux 5.12; older headers lack the name. */
#define MISC_MMAP_BUILD_ID (1u << 14)

struct rec_tail { uint32_t pid, tid; uint64_t time; };
struct rec_task { struct perf_event_header h; uint32_t pid, ppid, tid, ptid; uint64_t time; };
struct rec_comm { struct perf_event_header h; uint32_t pid, tid; };
struct rec_mmap { struct perf_event_header h; uint32_t pid, tid; uint64_t addr, len, pgoff; };
struct rec_file { uint32_t maj, min; uint64_t ino, ino_generation; };
struct rec_build_id { uint8_t size, reserved[3], id[20]; };
struct rec_mmap2 {
	struct rec_mmap m;
	union {
		struct rec_file file;
		struct rec_build_id build_id;
	};
	uint32_t prot, flags;
};
struct rec_lost { struct perf_event_header h; uint64_t id, lost; };
struct rec_lost_samples { struct perf_event_header h; uint64_t lost; };

_Static_assert(sizeof(struct rec_tail) == SIDEBAND_SAMPLE_TYPE_TAIL, "tail of a side-band record");
_Static_assert(sizeof(struct rec_task) == 32, "fork and exit records");
_Static_assert(sizeof(struct rec_mmap) == 40, "mmap record");
_Static_assert(sizeof(struct rec_mmap2) == 72, "mmap2 record");

/* A record without its tail, which was read already. */
struct body {
	struct perf_event_header h;
	const uint8_t *data;
	size_t len;
};

static bool body_take(const struct body *b, void *to, size_t len)
{
	if (b->len < len)
		return false;
	memcpy(to, b->data, len);
	return true;
}

/* Text from offset at; the kernel pads it with zeros up to the tail. */
static bool body_name(const struct body *b, size_t at, struct proc_event *ret)
{
	const char *name = (const char *)b->data + at;
	size_t len;

	if (b->len <= at)
		return false;
	len = strnlen(name, b->len - at);
	if (len == b->len - at)
		return false;
	ret->name = name;
	ret->name_len = len;
	return true;
}

static int decode_task(const struct body *b, uint8_t type, struct proc_event *ret)
{
	struct rec_task r;

	if (!body_take(b, &r, sizeof(r)))
		return -EBADMSG;
	ret->type = type;
	ret->pid = r.pid;
	ret->tid = r.tid;
	ret->ppid = r.ppid;
	ret->ptid = r.ptid;
	return 0;
}

static int decode_comm(const struct body *b, struct proc_event *ret)
{
	struct rec_comm r;

	if (!body_take(b, &r, sizeof(r)) || !body_name(b, sizeof(r), ret))
		return -EBADMSG;
	ret->type = b->h.misc & PERF_RECORD_MISC_COMM_EXEC ? PROC_EXEC : PROC_COMM;
	ret->pid = r.pid;
	ret->tid = r.tid;
	return 0;
}

static int take_mmap(const struct body *b, const struct rec_mmap *m, size_t name_at, struct proc_event *ret)
{
	if (!body_name(b, name_at, ret) || !m->len || __builtin_add_overflow(m->addr, m->len, &ret->end))
		return -EBADMSG;
	ret->type = PROC_MMAP;
	ret->pid = m->pid;
	ret->tid = m->tid;
	ret->start = m->addr;
	ret->offset = m->pgoff;
	return 0;
}

/* Mappings of the kernel itself, and of data, say nothing about user code. */
static bool is_user_code(const struct body *b)
{
	return (b->h.misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL &&
	       !(b->h.misc & PERF_RECORD_MISC_MMAP_DATA);
}

static int decode_mmap(const struct body *b, struct proc_event *ret)
{
	struct rec_mmap r;

	if (!body_take(b, &r, sizeof(r)))
		return -EBADMSG;
	return is_user_code(b) ? take_mmap(b, &r, sizeof(r), ret) : -ENOENT;
}

static int take_build_id(const struct rec_build_id *from, struct proc_event *ret)
{
	if (from->size > sizeof(ret->build_id))
		return -EBADMSG;
	ret->build_id_len = from->size;
	memcpy(ret->build_id, from->id, from->size);
	return 0;
}

static int decode_mmap2(const struct body *b, struct proc_event *ret)
{
	struct rec_mmap2 r;

	if (!body_take(b, &r, sizeof(r)))
		return -EBADMSG;
	if (!is_user_code(b) || !(r.prot & PROT_EXEC))
		return -ENOENT;
	if (b->h.misc & MISC_MMAP_BUILD_ID) {
		if (take_build_id(&r.build_id, ret) < 0)
			return -EBADMSG;
	} else {
		ret->dev = makedev(r.file.maj, r.file.min);
		ret->ino = r.file.ino;
		ret->ino_generation = r.file.ino_generation;
	}
	return take_mmap(b, &r.m, sizeof(r), ret);
}

static int decode_lost(const struct body *b, struct proc_event *ret)
{
	struct rec_lost r;

	if (!body_take(b, &r, sizeof(r)))
		return -EBADMSG;
	ret->type = PROC_LOST;
	ret->lost = r.lost;
	return 0;
}

static int decode_lost_samples(const struct body *b, struct proc_event *ret)
{
	struct rec_lost_samples r;

	if (!body_take(b, &r, sizeof(r)))
		return -EBADMSG;
	ret->type = PROC_LOST;
	ret->lost = r.lost;
	return 0;
}

static int decode_body(const struct body *b, struct proc_event *ret)
{
	switch (b->h.type) {
	case PERF_RECORD_FORK:
		return decode_task(b, PROC_FORK, ret);
	case PERF_RECORD_EXIT:
		return decode_task(b, PROC_EXIT, ret);
	case PERF_RECORD_COMM:
		return decode_comm(b, ret);
	case PERF_RECORD_MMAP:
		return decode_mmap(b, ret);
	case PERF_RECORD_MMAP2:
		return decode_mmap2(b, ret);
	case PERF_RECORD_LOST:
		return decode_lost(b, ret);
	case PERF_RECORD_LOST_SAMPLES:
		return decode_lost_samples(b, ret);
	}
	return -ENOENT;
}

int proc_event_decode(const void *record, size_t len, struct proc_event *ret)
{
	struct proc_event ev = {0};
	struct rec_tail tail;
	struct body b = {.data = record};
	int r;

	if (len < sizeof(b.h))
		return -EBADMSG;
	memcpy(&b.h, record, sizeof(b.h));
	if (b.h.size != len || len < sizeof(b.h) + sizeof(tail))
		return -EBADMSG;
	b.len = len - sizeof(tail);
	memcpy(&tail, b.data + b.len, sizeof(tail));
	ev.pid = tail.pid;
	ev.tid = tail.tid;
	ev.time_ns = tail.time;
	r = decode_body(&b, &ev);
	if (r == 0)
		*ret = ev;
	return r;
}
