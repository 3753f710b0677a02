// SPDX-License-Identifier: Apache-2.0
/* Formats: DWARF 5 section 6.2, DWARF 4 section 6.2. */
#include "symbol/lines.h"

#include <dwarf.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbol/bytes.h"

#define FILES_MAX   (1u << 20)
#define FORMATS_MAX 16
#define PATH_MAX_   4096

/* LEB128; bits beyond the 64th are dropped. */
static uint64_t take_leb(struct bytes *b, bool is_signed)
{
	uint64_t v = 0;
	unsigned shift = 0;

	while (b->p < b->end) {
		uint8_t byte = *b->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift = MIN(shift + 7, 64u);
		if (byte & 0x80)
			continue;
		if (is_signed && byte & 0x40 && shift < 64)
			v |= ~0ULL << shift;
		return v;
	}
	b->bad = true;
	return 0;
}

static uint64_t take_uleb(struct bytes *b)
{
	return take_leb(b, false);
}

static int64_t take_sleb(struct bytes *b)
{
	return (int64_t)take_leb(b, true);
}

static const char *take_string(struct bytes *b)
{
	const uint8_t *nul = memchr(b->p, '\0', (size_t)(b->end - b->p));
	const char *s = (const char *)b->p;

	if (!nul) {
		b->bad = true;
		return "";
	}
	b->p = nul + 1;
	return s;
}

static const char *string_at(const struct image_part *strings, uint64_t offset)
{
	if (offset >= strings->len || !memchr(strings->data + offset, '\0', strings->len - offset))
		return "";
	return (const char *)strings->data + offset;
}

/* --- head --- */

static int add_dir(struct line_table *t, const char *name)
{
	if (t->nr_dirs == FILES_MAX || array_reserve(&t->dirs, t->nr_dirs, &t->cap_dirs, sizeof(*t->dirs)) < 0)
		return -ENOMEM;
	t->dirs[t->nr_dirs++] = name;
	return 0;
}

static int add_file(struct line_table *t, const char *name, uint64_t dir)
{
	if (t->nr_files == FILES_MAX || array_reserve(&t->files, t->nr_files, &t->cap_files, sizeof(*t->files)) < 0)
		return -ENOMEM;
	t->files[t->nr_files++] = (struct line_file){.name = name, .dir = dir, .string = UINT32_MAX};
	return 0;
}

/* Until version 4 both lists count from 1; 0 is the directory, and no file. */
static int take_lists_4(struct line_table *t, struct bytes *b)
{
	const char *name;
	int r = add_dir(t, NULL);

	while (r == 0 && *(name = take_string(b)))
		r = add_dir(t, name);
	if (r == 0)
		r = add_file(t, "", 0);
	while (r == 0 && *(name = take_string(b))) {
		r = add_file(t, name, take_uleb(b));
		take_uleb(b); /* time */
		take_uleb(b); /* length */
	}
	return r < 0 ? r : b->bad ? -EBADMSG : 0;
}

struct format {
	uint64_t type, form;
};

struct entry {
	const char *name;
	uint64_t dir;
};

static int take_field(const struct line_sections *from, struct bytes *b, const struct format *f, bool is_64,
		      struct entry *e)
{
	const char *text = NULL;
	uint64_t number = 0;

	switch (f->form) {
	case DW_FORM_string:
		text = take_string(b);
		break;
	case DW_FORM_line_strp:
		text = string_at(&from->line_str, bytes_take(b, is_64 ? 8 : 4));
		break;
	case DW_FORM_strp:
		text = string_at(&from->str, bytes_take(b, is_64 ? 8 : 4));
		break;
	case DW_FORM_udata:
		number = take_uleb(b);
		break;
	case DW_FORM_data1:
		number = bytes_take(b, 1);
		break;
	case DW_FORM_data2:
		number = bytes_take(b, 2);
		break;
	case DW_FORM_data4:
		number = bytes_take(b, 4);
		break;
	case DW_FORM_data8:
		number = bytes_take(b, 8);
		break;
	case DW_FORM_data16:
		bytes_take(b, 16);
		break;
	case DW_FORM_block:
		bytes_take(b, take_uleb(b));
		break;
	default:
		return -EBADMSG;
	}
	if (f->type == DW_LNCT_path && text)
		e->name = text;
	else if (f->type == DW_LNCT_directory_index)
		e->dir = number;
	return b->bad ? -EBADMSG : 0;
}

static int take_list_5(struct line_table *t, const struct line_sections *from, struct bytes *b, bool is_64, bool files)
{
	uint64_t formats = bytes_take(b, 1), count;
	struct format f[FORMATS_MAX];
	int r = 0;

	if (formats > FORMATS_MAX)
		return -EBADMSG;
	for (uint64_t i = 0; i < formats; i++) {
		f[i].type = take_uleb(b);
		f[i].form = take_uleb(b);
	}
	count = take_uleb(b);
	if (b->bad || (count && !formats))
		return -EBADMSG;
	for (uint64_t i = 0; r == 0 && i < count; i++) {
		struct entry e = {.name = ""};

		for (uint64_t k = 0; r == 0 && k < formats; k++)
			r = take_field(from, b, &f[k], is_64, &e);
		if (r == 0)
			r = files ? add_file(t, e.name, e.dir) : add_dir(t, e.name);
	}
	return r;
}

static int take_head(struct line_table *t, const struct line_sections *from, struct bytes *b)
{
	uint64_t length = bytes_take(b, 4), head;
	bool is_64 = length == 0xffffffff;

	if (is_64)
		length = bytes_take(b, 8);
	if (b->bad || length > (size_t)(b->end - b->p))
		return -EBADMSG;
	b->end = b->p + length;
	t->version = (uint16_t)bytes_take(b, 2);
	if (t->version < 2 || t->version > 5)
		return -EBADMSG;
	if (t->version == 5)
		bytes_take(b, 2); /* size of addresses, of segment selectors */
	head = bytes_take(b, is_64 ? 8 : 4);
	if (b->bad || head > (size_t)(b->end - b->p))
		return -EBADMSG;
	t->program = b->p + head;
	t->end = b->end;
	b->end = t->program;
	t->min_inst = (uint8_t)bytes_take(b, 1);
	if (t->version >= 4)
		bytes_take(b, 1); /* operations of an instruction: 1 where we run */
	bytes_take(b, 1);	    /* is_stmt at the beginning */
	t->line_base = (int8_t)bytes_take(b, 1);
	t->line_range = (uint8_t)bytes_take(b, 1);
	t->opcode_base = (uint8_t)bytes_take(b, 1);
	t->lengths = b->p - 1;
	if (!t->opcode_base || !t->line_range)
		return -EBADMSG;
	bytes_take(b, t->opcode_base - 1u);
	if (b->bad)
		return -EBADMSG;
	if (t->version < 5)
		return take_lists_4(t, b);
	return take_list_5(t, from, b, is_64, false) < 0 ? -EBADMSG : take_list_5(t, from, b, is_64, true);
}

int line_table_open(const struct line_sections *from, uint64_t offset, const char *comp_dir, struct line_table *ret)
{
	struct line_table t = {.comp_dir = comp_dir};
	struct bytes b;
	int r;

	if (offset >= from->line.len)
		return -ENOENT;
	b = (struct bytes){from->line.data + offset, from->line.data + from->line.len, false};
	r = take_head(&t, from, &b);
	if (r < 0)
		line_table_done(&t);
	else
		*ret = t;
	return r;
}

void line_table_done(struct line_table *t)
{
	free(t->dirs);
	free(t->files);
	*t = (struct line_table){0};
}

/* --- files --- */

static size_t add_part(char path[PATH_MAX_], size_t len, const char *part)
{
	size_t n = strnlen(part, PATH_MAX_), slash = len && path[len - 1] != '/';

	if (!n || len + slash + n >= PATH_MAX_)
		return len;
	if (slash)
		path[len++] = '/';
	memcpy(path + len, part, n);
	return len + n;
}

static uint32_t make_path(const struct line_table *t, const struct line_file *f, struct index_writer *w)
{
	const char *dir = f->dir < t->nr_dirs && t->dirs[f->dir] ? t->dirs[f->dir] : "";
	char path[PATH_MAX_];
	size_t len = 0;

	if (!*f->name)
		return 0;
	if (*f->name != '/') {
		/* From version 5 on the list begins with the directory of the compilation itself. */
		if (*dir != '/' && t->comp_dir && (f->dir || t->version < 5 || !*dir))
			len = add_part(path, len, t->comp_dir);
		len = add_part(path, len, dir);
	}
	len = add_part(path, len, f->name);
	return index_add_string(w, path, len);
}

uint32_t line_table_file(struct line_table *t, struct index_writer *w, uint64_t number)
{
	struct line_file *f;

	if (number >= t->nr_files)
		return 0;
	f = &t->files[number];
	if (f->string == UINT32_MAX)
		f->string = make_path(t, f, w);
	return f->string;
}

/* --- rows --- */

struct machine {
	struct bytes b;
	struct line_row row;
};

static void reset(struct machine *m)
{
	m->row = (struct line_row){.file = 1, .line = 1};
}

static int extended(const struct line_table *t, struct machine *m, line_row_fn *fn, void *ctx)
{
	uint64_t len = take_uleb(&m->b);
	const uint8_t *next;
	int r = 0;

	if (m->b.bad || !len || len > (size_t)(m->b.end - m->b.p))
		return -EBADMSG;
	next = m->b.p + len;
	switch (bytes_take(&m->b, 1)) {
	case DW_LNE_end_sequence:
		m->row.end = true;
		r = fn(ctx, &m->row);
		reset(m);
		break;
	case DW_LNE_set_address:
		m->row.addr = bytes_take(&m->b, MIN(len - 1, 8));
		break;
	default:
		break;
	}
	m->b.p = next;
	return r;
}

static void advance(const struct line_table *t, struct machine *m, uint64_t operations)
{
	m->row.addr += operations * t->min_inst;
}

static void add_to_line(struct machine *m, int64_t delta)
{
	m->row.line += (uint32_t)delta;
}

static int standard(const struct line_table *t, struct machine *m, uint8_t opcode, line_row_fn *fn, void *ctx)
{
	switch (opcode) {
	case DW_LNS_copy:
		return fn(ctx, &m->row);
	case DW_LNS_advance_pc:
		advance(t, m, take_uleb(&m->b));
		return 0;
	case DW_LNS_advance_line:
		add_to_line(m, take_sleb(&m->b));
		return 0;
	case DW_LNS_set_file:
		m->row.file = take_uleb(&m->b);
		return 0;
	case DW_LNS_const_add_pc:
		advance(t, m, (255u - t->opcode_base) / t->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		m->row.addr += bytes_take(&m->b, 2);
		return 0;
	default:
		for (uint8_t i = 0; i < t->lengths[opcode]; i++)
			take_uleb(&m->b);
		return 0;
	}
}

static int special(const struct line_table *t, struct machine *m, uint8_t opcode, line_row_fn *fn, void *ctx)
{
	uint8_t n = (uint8_t)(opcode - t->opcode_base);

	advance(t, m, n / t->line_range);
	add_to_line(m, t->line_base + n % t->line_range);
	return fn(ctx, &m->row);
}

int line_table_run(const struct line_table *t, line_row_fn *fn, void *ctx)
{
	struct machine m = {.b = {t->program, t->end, false}};
	int r = 0;

	reset(&m);
	while (r == 0 && m.b.p < m.b.end) {
		uint8_t opcode = *m.b.p++;

		if (opcode >= t->opcode_base)
			r = special(t, &m, opcode, fn, ctx);
		else if (opcode == 0)
			r = extended(t, &m, fn, ctx);
		else
			r = standard(t, &m, opcode, fn, ctx);
		if (m.b.bad)
			return -EBADMSG;
	}
	return r;
}
