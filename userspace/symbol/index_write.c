// SPDX-License-Identifier: Apache-2.0
#include "symbol/index_write.h"

#include <string.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"

#define STRINGS_KEPT 32768 /* a power of two */
#define LEB_MAX	     10

struct kept_string {
	uint64_t hash;
	uint32_t at;
};

struct row {
	uint64_t addr;
	uint32_t v[2];
};

struct index_writer {
	struct index_head head;
	struct spool out;
	struct scratch *scratch;
	int error;
	struct kept_string strings[STRINGS_KEPT]; /* a cache: a later string replaces an earlier one */
	/* The table being written. */
	struct index_table *table;
	struct spool dir; /* in the scratch file */
	bool has_pending, has_last;
	struct row pending, last;
	struct index_block block;
	size_t block_len;
	uint8_t block_data[INDEX_BLOCK_MAX];
};

static void index_writer_fail(struct index_writer *w, int err)
{
	if (!w->error)
		w->error = err;
}

int index_writer_new(int fd, struct scratch *scratch, struct index_writer **ret)
{
	struct index_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->scratch = scratch;
	w->head.heap_offset = INDEX_HEAD_BYTES;
	spool_init(&w->out, fd, INDEX_HEAD_BYTES, INDEX_FILE_MAX);
	/* Offset 0 is left unused: it means none. */
	spool_add(&w->out, "", 1);
	*ret = w;
	return 0;
}

struct index_writer *index_writer_free(struct index_writer *w)
{
	free(w);
	return NULL;
}

static uint32_t index_heap_end(const struct index_writer *w)
{
	return (uint32_t)(w->out.end - INDEX_HEAD_BYTES);
}

uint32_t index_add_string(struct index_writer *w, const char *s, size_t len)
{
	struct kept_string *kept;
	uint64_t hash;

	if (!s || !len)
		return 0;
	len = MIN(len, (size_t)INDEX_STRING_MAX - 1);
	hash = hash_bytes(s, len, 7);
	kept = &w->strings[hash % STRINGS_KEPT];
	if (kept->at && kept->hash == hash)
		return kept->at;
	*kept = (struct kept_string){.hash = hash, .at = index_heap_end(w)};
	spool_add(&w->out, s, len);
	spool_add(&w->out, "", 1);
	return w->out.error ? 0 : kept->at;
}

static size_t index_put_uleb(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	do {
		to[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	return n;
}

static size_t index_put_difference(uint8_t *to, uint32_t from, uint32_t v)
{
	int64_t d = (int64_t)v - (int64_t)from;

	return index_put_uleb(to, ((uint64_t)d << 1) ^ (uint64_t)(d >> 63));
}

uint32_t index_add_node(struct index_writer *w, const struct index_node *n)
{
	uint8_t raw[5 * LEB_MAX];
	uint32_t at = index_heap_end(w);
	size_t len = index_put_uleb(raw, n->parent ? at - n->parent : 0);

	len += index_put_uleb(raw + len, n->name);
	len += index_put_uleb(raw + len, n->call_file);
	len += index_put_uleb(raw + len, n->call_line);
	len += index_put_uleb(raw + len, n->start_line);
	spool_add(&w->out, raw, len);
	return w->out.error ? 0 : at;
}

void index_table_begin(struct index_writer *w, enum index_table_kind kind)
{
	if (!w->head.heap_bytes)
		w->head.heap_bytes = index_heap_end(w);
	w->table = &w->head.table[kind];
	w->table->data_offset = w->out.end;
	w->has_pending = w->has_last = false;
	w->block = (struct index_block){0};
	w->block_len = 0;
	/* Beyond the scratch file's limit: sorters may still spill below it. */
	spool_init(&w->dir, w->scratch->fd, w->scratch->limit, w->scratch->limit + INDEX_DIR_MAX);
}

static void index_end_block(struct index_writer *w)
{
	if (!w->block.rows)
		return;
	w->block.bytes = (uint16_t)w->block_len;
	spool_add(&w->out, w->block_data, w->block_len);
	spool_add(&w->dir, &w->block, sizeof(w->block));
	w->table->blocks++;
	w->block.rows = 0;
	w->block_len = 0;
}

static void index_begin_block(struct index_writer *w, const struct row *r)
{
	w->block = (struct index_block){.addr = r->addr, .offset = (uint32_t)(w->out.end - w->table->data_offset)};
	w->last = (struct row){.addr = r->addr};
}

static void index_write_row(struct index_writer *w, const struct row *r)
{
	if (w->has_last && w->last.v[0] == r->v[0] && w->last.v[1] == r->v[1])
		return;
	if (w->block.rows == INDEX_BLOCK_ROWS)
		index_end_block(w);
	if (!w->block.rows)
		index_begin_block(w, r);
	w->block_len += index_put_uleb(w->block_data + w->block_len, r->addr - w->last.addr);
	w->block_len += index_put_difference(w->block_data + w->block_len, w->last.v[0], r->v[0]);
	w->block_len += index_put_difference(w->block_data + w->block_len, w->last.v[1], r->v[1]);
	w->block.rows++;
	w->table->rows++;
	w->last = *r;
	w->has_last = true;
}

void index_add_row(struct index_writer *w, uint64_t addr, uint32_t first, uint32_t second)
{
	struct row r = {.addr = addr, .v = {first, second}};

	if (w->has_pending && w->pending.addr > addr)
		return;
	if (w->has_pending && w->pending.addr != addr)
		index_write_row(w, &w->pending);
	w->pending = r;
	w->has_pending = true;
}

static int index_copy_dir(struct index_writer *w)
{
	struct index_block block;

	w->table->data_bytes = w->out.end - w->table->data_offset;
	w->table->dir_offset = w->out.end;
	for (uint32_t i = 0; i < w->table->blocks; i++) {
		int err = file_read_at(w->dir.fd, &block, sizeof(block), w->dir.start + i * sizeof(block));

		if (err)
			return err;
		spool_add(&w->out, &block, sizeof(block));
	}
	return 0;
}

int index_table_end(struct index_writer *w)
{
	int r;

	if (w->has_pending)
		index_write_row(w, &w->pending);
	index_end_block(w);
	r = spool_flush(&w->dir);
	if (r == 0)
		r = index_copy_dir(w);
	if (r < 0)
		index_writer_fail(w, r);
	return w->error ? w->error : w->out.error;
}

uint64_t index_writer_rows(const struct index_writer *w, enum index_table_kind kind)
{
	return w->head.table[kind].rows;
}

int index_writer_finish(struct index_writer *w, const struct index_identity *of, uint32_t flags)
{
	uint8_t first[INDEX_HEAD_BYTES] = {0};
	int r = spool_flush(&w->out);

	if (r == 0)
		r = w->error;
	if (r < 0)
		return r;
	memcpy(w->head.magic, INDEX_MAGIC, sizeof(w->head.magic));
	w->head.version = INDEX_VERSION;
	w->head.flags = flags;
	w->head.of = *of;
	w->head.file_bytes = w->out.end;
	if (!w->head.heap_bytes)
		w->head.heap_bytes = index_heap_end(w);
	w->head.crc = (uint32_t)crc32(0, (const Bytef *)&w->head, offsetof(struct index_head, crc));
	memcpy(first, &w->head, sizeof(w->head));
	/* Not -ENOSPC, which would mean that earlier records are valid. */
	return file_write_at(w->out.fd, first, sizeof(first), 0) < 0 ? -EIO : 0;
}
