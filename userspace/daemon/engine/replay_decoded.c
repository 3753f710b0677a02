// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/replay_decoded.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/engine/capture.h"
#include "daemon/ipc.h"
#include "process/beside.h"

#define QUESTIONS_BACK 4096

/* A function is known by key and cookies, wherever in it a frame is; a question for code by its count, too. */
static uint64_t replay_decoded_key(uint32_t pid, const uint64_t identity[4], bool attach, const struct runtime_frame *f)
{
	uint64_t words[3 + RUNTIME_COOKIES] = {pid, attach ? 1 : f->flags & RUNTIME_CODE, attach ? 0 : f->key};
	uint64_t hash = hash_bytes(identity, 4 * sizeof(identity[0]), 1);

	if (!attach)
		memcpy(&words[3], f->cookie, sizeof(f->cookie));
	return hash_bytes(words, sizeof(words), hash);
}

/* --- memory --- */

/* The read at *at, which moves behind it. false: there are no more. */
static bool replay_memory_next(const struct replay_memory *m, size_t *at, struct capture_read *ret,
			       const uint8_t **ret_bytes)
{
	if (m->len - *at < sizeof(*ret))
		return false;
	memcpy(ret, m->data + *at, sizeof(*ret));
	if (ret->len > m->len - *at - sizeof(*ret))
		return false;
	*ret_bytes = m->data + *at + sizeof(*ret);
	*at += MIN(sizeof(*ret) + ALIGN_UP((size_t)ret->len, 8), m->len - *at);
	return true;
}

/* As many bytes as one read has of [addr, addr + len): the first such one from *at on, to end. */
static size_t replay_memory_find(struct replay_memory *m, size_t from, size_t end, uint64_t addr, uint8_t *to,
				 size_t len)
{
	struct capture_read r;
	const uint8_t *bytes;

	while (from < end && replay_memory_next(m, &from, &r, &bytes)) {
		if (addr < r.addr || addr - r.addr >= r.len)
			continue;
		len = MIN(len, (size_t)(r.len - (addr - r.addr)));
		memcpy(to, bytes + (addr - r.addr), len);
		m->at = from;
		return len;
	}
	return 0;
}

static int replay_memory_read(struct memory *memory, uint64_t addr, void *to, size_t len)
{
	struct replay_memory *m = (void *)memory;
	uint8_t *bytes = to;

	while (len) {
		size_t n = replay_memory_find(m, m->at, m->len, addr, bytes, len);

		if (!n)
			n = replay_memory_find(m, 0, m->at, addr, bytes, len);
		if (!n)
			return -EFAULT;
		addr += n;
		bytes += n;
		len -= n;
	}
	return 0;
}

/* Its parts in any order. */
static int replay_write_beside(const struct replay_memory *m, int fd)
{
	struct capture_read r;
	const uint8_t *bytes;
	int err = -ENOSYS; /* the capture has none */

	for (size_t at = 0; replay_memory_next(m, &at, &r, &bytes);) {
		if (r.addr < CAPTURE_BESIDE)
			continue;
		if (r.addr - CAPTURE_BESIDE > BESIDE_BYTES_MAX)
			return -EFBIG;
		err = file_write_at(fd, bytes, r.len, r.addr - CAPTURE_BESIDE);
		if (err)
			return err;
	}
	return err;
}

static int replay_memory_beside(struct memory *memory, uint64_t addr, const char *name, int *ret_fd)
{
	_cleanup_(closep) int fd = ipc_memfd_new("beside");
	int err = fd < 0 ? fd : replay_write_beside((const struct replay_memory *)(const void *)memory, fd);

	(void)addr, (void)name; /* a function needs one at most */
	if (!err)
		*ret_fd = steal_fd(&fd);
	return err;
}

/* --- questions --- */

/* Of code that was asked for less often while the capture was taken, the last answer. */
static const uint8_t *replay_decoded_find(const struct replay_decoded *r, uint32_t pid, const uint64_t identity[4],
					  const struct runtime_frame *frame)
{
	struct runtime_frame f = frame ? *frame : (struct runtime_frame){0};
	const uint8_t *record = map_find_ptr(&r->questions, replay_decoded_key(pid, identity, !frame, &f));

	for (int tries = 0; !record && f.flags & RUNTIME_CODE && f.cookie[0] && tries < QUESTIONS_BACK; tries++) {
		if (!--f.cookie[0])
			memset(f.cookie, 0, sizeof(f.cookie));
		record = map_find_ptr(&r->questions, replay_decoded_key(pid, identity, false, &f));
	}
	return record;
}

static int replay_decoded_reads(void *ctx, const struct decoders_target *t, const struct runtime_frame *frame,
				struct memory **m, struct runtime_file *ret)
{
	const uint64_t identity[4] = {t->start_ns, t->exec_id, t->binary->dev, t->binary->ino};
	struct replay_decoded *r = ctx;
	const uint8_t *record = replay_decoded_find(r, t->pid, identity, frame);
	struct capture_decoded head;

	if (!record)
		return -ENOENT;
	memcpy(&head, record, sizeof(head));
	r->memory = (struct replay_memory){.memory.read = replay_memory_read,
					   .memory.beside = replay_memory_beside, .data = record + sizeof(head),
					   .len = head.reads_len};
	*m = &r->memory.memory;
	if (!frame) {
		ret->bias = head.bias;
		ret->thread = head.thread;
	}
	return 0;
}

void replay_decoded_init(struct replay_decoded *r)
{
	*r = (struct replay_decoded){.as = {.reads = replay_decoded_reads, .ctx = r}};
}

void replay_decoded_done(struct replay_decoded *r)
{
	map_done(&r->questions);
}

/* The first answer counts, unless it was an error. */
int replay_decoded_add(struct replay_decoded *r, const void *record, size_t len)
{
	struct capture_decoded head, before;
	const void *old;
	uint64_t key;

	if (len < sizeof(head))
		return 0;
	memcpy(&head, record, sizeof(head));
	if (head.reads_len != len - sizeof(head))
		return 0;
	key = replay_decoded_key(head.pid, (const uint64_t[4]){head.start_ns, head.exec_id, head.dev, head.ino},
				 head.attach, &head.frame);
	old = map_find_ptr(&r->questions, key);
	if (old)
		memcpy(&before, old, sizeof(before));
	return old && !before.err ? 0 : map_put_ptr(&r->questions, key, (void *)(uintptr_t)record);
}
