// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PIECE 4096u

void memory_question(struct memory *m)
{
	m->reads = 0;
	m->bytes = 0;
	m->gathers = false;
}

void memory_gather(struct memory *m)
{
	m->gathers = true;
	memset(m->lines.at, 0xff, sizeof(m->lines.at));
}

void memory_gather_done(struct memory *m)
{
	m->gathers = false;
}

/* The line that begins at an address; NULL: it is not all there. */
static const uint8_t *memory_line(struct memory *m, uint64_t at)
{
	uint32_t i = (uint32_t)(at / MEMORY_LINE) % MEMORY_LINES;
	struct memory_lines *l = &m->lines;

	if (l->at[i] == at)
		return l->byte[i];
	l->at[i] = UINT64_MAX;
	if (m->read(m, at, l->byte[i], MEMORY_LINE))
		return NULL;
	l->at[i] = at;
	return l->byte[i];
}

static bool memory_from_line(struct memory *m, uint64_t addr, void *to, size_t len)
{
	uint64_t at = ALIGN_DOWN(addr, (uint64_t)MEMORY_LINE);
	const uint8_t *line;

	if (!m->gathers || addr - at + len > MEMORY_LINE)
		return false;
	line = memory_line(m, at);
	if (line)
		memcpy(to, line + (addr - at), len);
	return line;
}

int memory_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	if (m->reads >= MEMORY_READS_MAX || len > MEMORY_BYTES_MAX - MIN(m->bytes, (size_t)MEMORY_BYTES_MAX))
		return -E2BIG;
	m->reads++;
	m->bytes += len;
	return memory_from_line(m, addr, to, len) ? 0 : m->read(m, addr, to, len);
}

struct memory_spent memory_spent(const struct memory *m)
{
	return (struct memory_spent){.reads = m->reads, .bytes = m->bytes};
}

void memory_unspend(struct memory *m, struct memory_spent to)
{
	m->reads = to.reads;
	m->bytes = to.bytes;
}

int memory_u64(struct memory *m, uint64_t addr, uint64_t *ret)
{
	uint64_t v;
	int r = memory_read(m, addr, &v, sizeof(v));

	if (r == 0)
		*ret = v;
	return r;
}

int memory_u32(struct memory *m, uint64_t addr, uint32_t *ret)
{
	uint32_t v;
	int r = memory_read(m, addr, &v, sizeof(v));

	if (r == 0)
		*ret = v;
	return r;
}

int memory_u8(struct memory *m, uint64_t addr, uint8_t *ret)
{
	return memory_read(m, addr, ret, 1);
}

/* The page behind the string's end may not exist. */
int memory_string(struct memory *m, uint64_t addr, char *to, size_t size)
{
	size_t done = 0;

	while (done < size - 1) {
		size_t n = MIN(size - 1 - done, (size_t)(PIECE - (addr + done) % PIECE));
		int r = memory_read(m, addr + done, to + done, MIN(n, (size_t)64));
		const char *end;

		n = MIN(n, (size_t)64);
		if (r < 0)
			return r;
		end = memchr(to + done, '\0', n);
		if (end)
			return 0;
		done += n;
	}
	to[size - 1] = '\0';
	return 0;
}

int memory_beside(struct memory *m, uint64_t addr, const char *name, int *ret_fd)
{
	return m->beside ? m->beside(m, addr, name, ret_fd) : -ENOSYS;
}

static int memory_fd_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	const struct memory_fd *f = (const void *)m;

	if (addr > INT64_MAX)
		return -EFAULT;
	return pread(f->fd, to, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
}

void memory_fd_init(struct memory_fd *m, int fd)
{
	*m = (struct memory_fd){.memory.read = memory_fd_read, .fd = fd};
}
