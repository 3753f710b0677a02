// SPDX-License-Identifier: Apache-2.0
#include "daemon/decode.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ERRNO_MAX 4095 /* Linux, include/linux/err.h */

static bool decode_err_is_sound(int err)
{
	return err <= 0 && err >= -ERRNO_MAX;
}

/* --- attached --- */

size_t decode_attached_pack(int err, uint64_t bias, const struct runtime_attached *a, const char *why,
			    uint8_t to[IPC_DATA_MAX])
{
	struct decode_attached *m = (void *)to;

	memset(m, 0, sizeof(*m));
	m->err = err;
	m->bias = bias;
	if (err)
		memcpy(m->why, why, strnlen(why, sizeof(m->why) - 1));
	else
		m->attached = *a;
	return sizeof(*m);
}

int decode_attached_unpack(const struct ipc_message *m, struct decode_attached *ret)
{
	const struct decode_attached *a = (const void *)m->data;

	if (m->head.len != sizeof(*a) || !decode_err_is_sound(a->err) || (!a->err && !runtime_attached_sound(&a->attached)))
		return -EBADMSG;
	memcpy(ret, a, sizeof(*a));
	ret->why[sizeof(ret->why) - 1] = '\0';
	return 0;
}

/* --- batches --- */

size_t decode_batch_pack(const struct runtime_frame *frames, uint32_t count, uint8_t to[IPC_DATA_MAX])
{
	const struct decode_batch head = {.count = count};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), frames, count * sizeof(*frames));
	return sizeof(head) + count * sizeof(*frames);
}

int decode_batch_unpack(const struct ipc_message *m, const struct runtime_frame **ret, uint32_t *ret_count)
{
	const struct decode_batch *b = (const void *)m->data;

	if (m->head.len < sizeof(*b) || !b->count || b->count > DECODE_FRAMES ||
	    m->head.len != sizeof(*b) + b->count * sizeof(**ret))
		return -EBADMSG;
	*ret = (const void *)(b + 1);
	*ret_count = b->count;
	return 0;
}

/* --- functions --- */

/* Rows out of order are left out: the other side looks them up by halving. */
static uint32_t decode_pack_lines(const struct runtime_function *f, struct runtime_line *to)
{
	uint32_t kept = 0, count = MIN(f->nr_lines, (uint32_t)RUNTIME_LINES_MAX);

	for (uint32_t i = 0; i < count; i++)
		if (!kept || f->lines[i].position >= to[kept - 1].position)
			to[kept++] = f->lines[i];
	return kept;
}

size_t decode_function_pack(int err, uint32_t index, const struct runtime_function *f, uint8_t to[IPC_DATA_MAX])
{
	struct decode_function *head = (void *)to;
	uint8_t *text;

	*head = (struct decode_function){.err = err, .index = index};
	if (err)
		return sizeof(*head);
	head->start_line = f->start_line;
	head->has_columns = f->has_columns;
	head->is_bounded = f->is_bounded;
	head->line_file = f->line_file;
	head->epoch = f->epoch;
	head->nr_lines = decode_pack_lines(f, (void *)(head + 1));
	head->name_len = (uint32_t)strnlen(f->name, sizeof(f->name) - 1);
	head->file_len = (uint32_t)strnlen(f->file, sizeof(f->file) - 1);
	text = (uint8_t *)(head + 1) + head->nr_lines * sizeof(struct runtime_line);
	memcpy(text, f->name, head->name_len);
	memcpy(text + head->name_len, f->file, head->file_len);
	return sizeof(*head) + head->nr_lines * sizeof(struct runtime_line) + head->name_len + head->file_len;
}

static bool decode_function_fits(const struct ipc_message *m, uint32_t index)
{
	const struct decode_function *f = (const void *)m->data;

	if (m->head.len < sizeof(*f) || f->index != index || !decode_err_is_sound(f->err))
		return false;
	if (f->err)
		return m->head.len == sizeof(*f);
	return f->line_file < RUNTIME_LINE_FILES_NR && f->nr_lines <= RUNTIME_LINES_MAX &&
	       f->name_len < RUNTIME_NAME_MAX && f->file_len < RUNTIME_PATH_MAX &&
	       m->head.len == sizeof(*f) + f->nr_lines * sizeof(struct runtime_line) + f->name_len + f->file_len;
}

static bool decode_lines_are_sorted(const struct runtime_line *lines, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (lines[i].position < lines[i - 1].position)
			return false;
	return true;
}

int decode_function_unpack(const struct ipc_message *m, uint32_t index, int *ret_err, struct runtime_function *ret)
{
	const struct decode_function *f = (const void *)m->data;
	const struct runtime_line *lines = (const void *)(f + 1);
	const char *text;

	if (!decode_function_fits(m, index) || (!f->err && !decode_lines_are_sorted(lines, f->nr_lines)))
		return -EBADMSG;
	*ret_err = f->err;
	if (f->err)
		return 0;
	text = (const char *)(lines + f->nr_lines);
	memcpy(ret->name, text, f->name_len);
	ret->name[f->name_len] = '\0';
	memcpy(ret->file, text + f->name_len, f->file_len);
	ret->file[f->file_len] = '\0';
	ret->start_line = f->start_line;
	ret->has_columns = f->has_columns;
	ret->is_bounded = f->is_bounded;
	ret->line_file = f->line_file;
	ret->epoch = f->epoch;
	ret->nr_lines = f->nr_lines;
	memcpy(ret->lines, lines, f->nr_lines * sizeof(*lines));
	return 0;
}

/* --- code --- */

static size_t decode_code_len(const struct runtime_code *c)
{
	return offsetof(struct decode_code, code) + runtime_code_len(c);
}

size_t decode_code_pack(int err, uint32_t index, const struct runtime_code_made *c, uint8_t to[IPC_DATA_MAX])
{
	struct decode_code *head = (void *)to;
	struct runtime_frame *functions = (void *)(head + 1);
	struct runtime_code_node *nodes;
	struct runtime_code_row *rows;

	*head = (struct decode_code){.err = err, .index = index};
	if (err)
		return sizeof(*head);
	head->code = c->code;
	memcpy(functions, c->functions, c->code.nr_functions * sizeof(*functions));
	nodes = (void *)(functions + c->code.nr_functions);
	memcpy(nodes, c->nodes, c->code.nr_nodes * sizeof(*nodes));
	rows = (void *)(nodes + c->code.nr_nodes);
	memcpy(rows, c->rows, c->code.nr_rows * sizeof(*rows));
	memcpy(rows + c->code.nr_rows, c->more, c->code.nr_more * sizeof(c->more[0]));
	return decode_code_len(&c->code);
}

static bool decode_code_fits(const struct ipc_message *m, uint32_t index)
{
	const struct decode_code *c = (const void *)m->data;

	if (m->head.len < sizeof(*c) || c->index != index || !decode_err_is_sound(c->err))
		return false;
	if (c->err)
		return m->head.len == sizeof(*c);
	return c->code.nr_functions <= RUNTIME_CODE_FUNCTIONS && c->code.nr_nodes <= RUNTIME_CODE_NODES &&
	       c->code.nr_rows <= RUNTIME_CODE_ROWS && c->code.nr_more <= RUNTIME_CODE_MORE &&
	       m->head.len == decode_code_len(&c->code);
}

/* Of functions, what only the engine says of a frame is no part. */
static bool decode_functions_are_sound(const struct runtime_frame *f, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (f[i].flags & (RUNTIME_CODE | RUNTIME_HINTED | RUNTIME_MOVED | RUNTIME_BOUND))
			return false;
	return true;
}

int decode_code_unpack(const struct ipc_message *m, uint32_t index, uint64_t pc, int *ret_err,
		       struct runtime_code_made *ret)
{
	const struct decode_code *c = (const void *)m->data;
	const struct runtime_frame *functions = (const void *)(c + 1);
	const struct runtime_code_node *nodes;
	const struct runtime_code_row *rows;

	if (!decode_code_fits(m, index))
		return -EBADMSG;
	*ret_err = c->err;
	if (c->err)
		return 0;
	nodes = (const void *)(functions + c->code.nr_functions);
	rows = (const void *)(nodes + c->code.nr_nodes);
	if (!decode_functions_are_sound(functions, c->code.nr_functions) ||
	    !runtime_code_sound(&c->code, nodes, rows) || pc < c->code.start || pc >= c->code.end)
		return -EBADMSG;
	ret->code = c->code;
	memcpy(ret->functions, functions, c->code.nr_functions * sizeof(*functions));
	memcpy(ret->nodes, nodes, c->code.nr_nodes * sizeof(*nodes));
	memcpy(ret->rows, rows, c->code.nr_rows * sizeof(*rows));
	memcpy(ret->more, rows + c->code.nr_rows, c->code.nr_more * sizeof(ret->more[0]));
	return 0;
}

/* --- reads --- */

size_t decode_read_pack(enum decode_source source, uint64_t addr, const void *bytes, uint32_t len,
			uint8_t to[IPC_DATA_MAX])
{
	const struct decode_read head = {.addr = addr, .len = len, .source = source};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), bytes, len);
	return sizeof(head) + len;
}

int decode_read_unpack(const struct ipc_message *m, struct decode_read *ret, const uint8_t **ret_bytes)
{
	const struct decode_read *r = (const void *)m->data;

	if (m->head.len < sizeof(*r) || !r->len || r->len > DECODE_BYTES || r->source >= DECODE_SOURCES ||
	    m->head.len != sizeof(*r) + r->len)
		return -EBADMSG;
	*ret = *r;
	*ret_bytes = (const uint8_t *)(r + 1);
	return 0;
}

/* --- decoding --- */

static decode_find_fn *decode_find = runtime_of_file;
static const struct runtime_ops *const *decode_list = runtime_list;

void decode_set_runtimes(decode_find_fn *find, const struct runtime_ops *const *list)
{
	decode_find = find ? find : runtime_of_file;
	decode_list = list ? list : runtime_list;
}

int decode_runtime_of_file(struct binary *b)
{
	return decode_find(b);
}

const struct runtime_ops *decode_runtime(uint32_t index)
{
	for (uint32_t i = 0; decode_list[i]; i++)
		if (i == index)
			return decode_list[i];
	return NULL;
}

/* A mapping begins at a page, which may lie before the segment's first byte. */
static bool decode_segment_covers(const struct binary_segment *s, uint64_t offset)
{
	uint64_t first = ALIGN_DOWN(s->offset, (uint64_t)sysconf(_SC_PAGESIZE));

	return (s->flags & PF_X) && offset >= first && offset < s->offset + s->filesz;
}

int decode_bias(const struct binary *b, const struct decode_mapping *at, uint64_t *ret)
{
	for (uint16_t i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];

		if (decode_segment_covers(s, at->offset)) {
			*ret = at->start - at->offset + s->offset - s->vaddr;
			return 0;
		}
	}
	return -EFAULT;
}

int decode_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX])
{
	int runtime = decode_find(file->binary), err;

	memset(ret, 0, sizeof(*ret));
	memset(why, 0, RUNTIME_WHY_MAX);
	if (runtime < 0)
		return runtime;
	memory_question(m);
	err = decode_list[runtime]->attach(file, m, ret, why);
	ret->runtime = (uint32_t)runtime;
	if (!err && !runtime_attached_sound(ret))
		err = -EBADMSG;
	return err > 0 ? -EBADMSG : err;
}

int decode_frame(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		 struct runtime_function *ret)
{
	int err;

	ret->name[0] = ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = ret->line_file = 0;
	ret->epoch = 0;
	ret->has_columns = ret->is_bounded = false;
	if (!decode_list[a->runtime]->decode)
		return -ENOENT;
	memory_question(m);
	err = decode_list[a->runtime]->decode(a, m, f, ret);
	return err > 0 ? -EBADMSG : err;
}

int decode_code(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *q,
		struct runtime_code_made *ret)
{
	const struct runtime_ops *ops = decode_list[a->runtime];
	int err;

	memset(&ret->code, 0, sizeof(ret->code));
	memcpy(ret->known, q->cookie + 1, sizeof(ret->known));
	ret->known_epoch = q->cookie[RUNTIME_COOKIE_EPOCH];
	ret->heap = q->position;
	memory_question(m);
	err = ops->code ? ops->code(a, m, q->key, ret) : -ENOENT;
	if (!err && (!runtime_code_sound(&ret->code, ret->nodes, ret->rows) || q->key < ret->code.start ||
		     q->key >= ret->code.end))
		err = -EBADMSG;
	return err > 0 ? -EBADMSG : err;
}
