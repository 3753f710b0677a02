// SPDX-License-Identifier: Apache-2.0
/*
 * The lines of an iseq. Its table has a row for each position where an
 * instruction with a line begins; the positions are a bit vector with ranks
 * (struct succ_index_table, iseq.c): 54 of 7-bit ranks, then blocks of 512 bits.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define LINES_HEAD	54
#define LINES_HEAD_PART 9
#define LINES_HEAD_WORDS (LINES_HEAD / LINES_HEAD_PART)
#define LINES_BLOCK	512
#define LINES_BLOCK_WORDS 10 /* rank, ranks of its eighths, bits */
#define LINES_SIZE_MAX	(1u << 20)
#define LINES_CHUNK	256

struct lines {
	const struct ruby *ruby;
	uint64_t rows;	/* struct iseq_insn_info_entry[] */
	uint32_t nr_rows, row;
	uint32_t first; /* row in the chunk */
	uint32_t in_chunk;
	uint32_t chunk[LINES_CHUNK * 3];
	struct runtime_function *to;
};

static int lines_load(struct lines *l)
{
	uint32_t size = l->ruby->layout->insn;

	l->first = l->row;
	l->in_chunk = MIN(l->nr_rows - l->row, LINES_CHUNK);
	return memory_read(l->ruby->memory, l->rows + (uint64_t)l->row * size, l->chunk, l->in_chunk * size);
}

/* The next row begins at this position. 1: there are no more, or no room for them. */
static int lines_add(struct lines *l, uint32_t position)
{
	struct runtime_function *to = l->to;
	uint32_t line;
	int err = 0;

	if (l->row >= l->nr_rows || to->nr_lines == RUNTIME_LINES_MAX)
		return 1;
	if (l->row - l->first >= l->in_chunk)
		err = lines_load(l);
	if (err < 0)
		return err;
	line = l->chunk[(l->row - l->first) * (l->ruby->layout->insn / 4u)];
	l->row++;
	/* Instructions that the compiler added have no line: they are told with those before, or the function's first. */
	if (!line && to->nr_lines)
		return 0;
	line = line ? line : to->start_line;
	return !runtime_add_line(to, position, line);
}

/* Ranks: how many rows begin up to the position. */
static int lines_head(struct lines *l, const uint64_t *part, uint32_t size)
{
	int err = 0;

	for (uint32_t p = 0; err == 0 && p < LINES_HEAD && p < size; p++)
		if (((part[p / LINES_HEAD_PART] >> (p % LINES_HEAD_PART * 7)) & 0x7f) > l->row)
			err = lines_add(l, p);
	return err;
}

static int lines_block(struct lines *l, const uint64_t *bits, uint32_t from)
{
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < LINES_BLOCK; i++)
		if ((bits[i / 64] >> (i % 64)) & 1)
			err = lines_add(l, from + i);
	return err;
}

static int lines_table(struct lines *l, uint64_t table, uint32_t size)
{
	uint64_t head[LINES_HEAD_WORDS], block[LINES_BLOCK_WORDS];
	int err = ruby_words(l->ruby, table, head, LINES_HEAD_WORDS);

	if (err == 0)
		err = lines_head(l, head, size);
	table += sizeof(head);
	for (uint32_t p = LINES_HEAD; err == 0 && p < size; p += LINES_BLOCK, table += sizeof(block)) {
		err = ruby_words(l->ruby, table, block, LINES_BLOCK_WORDS);
		if (err == 0)
			err = lines_block(l, block + 2, p);
	}
	return err < 0 ? err : 0;
}

/* insns_info: body, positions, size, succ_index_table. A single row holds for the whole function. */
int ruby_lines(const struct ruby *r, const uint64_t *body, struct runtime_function *ret)
{
	const uint64_t *info = body + r->layout->insns_info / 8;
	uint32_t size = body[RUBY_BODY_SIZE / 8] >> 32;
	struct lines l = {.ruby = r, .rows = info[0], .nr_rows = (uint32_t)info[2], .to = ret};
	int err;

	if (!l.nr_rows)
		return 0;
	if (size > LINES_SIZE_MAX || l.nr_rows > size)
		return -EBADMSG;
	err = l.nr_rows == 1 ? lines_add(&l, 0) : lines_table(&l, info[3], size);
	return err < 0 ? err : 0;
}
