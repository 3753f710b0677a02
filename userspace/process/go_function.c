// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of the table, and what it has for their addresses.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/go_table.h"

/* Offsets in Go's struct _func, by format. */
struct go_layout {
	uint8_t wide; /* it begins with an address of 8 bytes, and funcdata is one as well */
	uint8_t name, sp, file, line, nr_values, unit, start_line, id, flags, nr_data, size;
	uint8_t tree; /* which funcdata */
};

/* 0: not there, as the unit until Go 1.15 and the line where a function begins until Go 1.19. */
static const struct go_layout go_layouts[GO_FORMAT_NR] = {
	[GO_1_2] = {1, 8, 20, 24, 28, 32, 0, 0, 36, 0, 39, 40, 4},
	[GO_1_16] = {1, 8, 20, 24, 28, 32, 36, 0, 40, 41, 43, 44, 3},
	[GO_1_18] = {0, 4, 16, 20, 24, 28, 32, 0, 36, 37, 39, 40, 3},
	[GO_1_20] = {0, 4, 16, 20, 24, 28, 32, 36, 40, 41, 43, 44, 3},
};

/* The third table of values (_PCDATA_InlTreeIndex) is that of inlined calls. */
enum { VALUES_INLINED = 2, VALUES_MAX = 64, DATA_NONE = 0xffffffff };

static bool go_read(const struct go_table *t, uint64_t at, void *to, size_t len)
{
	return at >= t->at && at < t->end && binary_read_vaddr(t->binary, at, to, len) == (ssize_t)len;
}

static uint32_t go_u32(const uint8_t *from, unsigned at)
{
	uint32_t v;

	memcpy(&v, from + at, sizeof(v));
	return v;
}

/* --- functions --- */

/* The entry of the sorted list; the one behind the last function has the end of the code. */
static int go_entry(const struct go_table *t, uint32_t number, uint64_t *ret_start, uint64_t *ret_at)
{
	unsigned size = go_layouts[t->format].wide ? 8 : 4;
	uint64_t pair[2] = {0}, base = t->format == GO_1_2 ? t->at : t->functions;
	uint8_t raw[16] = {0};

	if (!go_read(t, t->functions + 2 * (uint64_t)size * number, raw, number < t->count ? 2 * size : size))
		return -EBADMSG;
	memcpy(&pair[0], raw, size);
	memcpy(&pair[1], raw + size, size);
	*ret_start = t->text + pair[0];
	*ret_at = base + pair[1];
	return 0;
}

static void go_function_tree(const struct go_table *t, const struct go_layout *l, uint64_t at, uint32_t nr_values,
			     struct go_function *ret)
{
	uint64_t pos = at + l->size + 4 * (uint64_t)nr_values;
	uint32_t offset;

	if (l->wide) {
		if (!go_read(t, ALIGN_UP(pos, (uint64_t)8) + 8 * (uint64_t)l->tree, &ret->tree, sizeof(ret->tree)))
			ret->tree = 0;
	} else if (t->data && go_read(t, pos + 4 * (uint64_t)l->tree, &offset, sizeof(offset)) && offset != DATA_NONE) {
		ret->tree = t->data + offset;
	}
}

static void go_function_inlined(const struct go_table *t, const struct go_layout *l, uint64_t at, const uint8_t *raw,
				struct go_function *ret)
{
	uint32_t nr_values = go_u32(raw, l->nr_values);

	if (nr_values <= VALUES_INLINED || nr_values > VALUES_MAX || raw[l->nr_data] <= l->tree)
		return;
	if (go_read(t, at + l->size + 4 * VALUES_INLINED, &ret->inlined, sizeof(ret->inlined)) && ret->inlined)
		go_function_tree(t, l, at, nr_values, ret);
}

int go_function_at(const struct go_table *t, uint32_t number, struct go_function *ret)
{
	const struct go_layout *l = &go_layouts[t->format];
	uint64_t start, end, at, next;
	uint8_t raw[64];

	if (number >= t->count)
		return -ENOENT;
	if (go_entry(t, number, &start, &at) < 0 || go_entry(t, number + 1, &end, &next) < 0 || start >= end ||
	    !go_read(t, at, raw, l->size))
		return -EBADMSG;
	*ret = (struct go_function){.start = start,
				    .end = end,
				    .name = go_u32(raw, l->name),
				    .sp = go_u32(raw, l->sp),
				    .file = go_u32(raw, l->file),
				    .line = go_u32(raw, l->line),
				    .unit = l->unit ? go_u32(raw, l->unit) : 0,
				    .start_line = l->start_line ? go_u32(raw, l->start_line) : 0,
				    .id = raw[l->id],
				    .flags = l->flags ? raw[l->flags] : 0};
	go_function_inlined(t, l, at, raw, ret);
	return 0;
}

int go_function_find(const struct go_table *t, uint64_t vaddr, struct go_function *ret)
{
	uint32_t low = 0, high = t->count + 1; /* the entry behind the last function too */
	uint64_t start, at;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (go_entry(t, middle, &start, &at) < 0)
			return -EBADMSG;
		if (start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && low <= t->count ? go_function_at(t, low - 1, ret) : -ENOENT;
}

/* --- values by address --- */

void go_steps_init(struct go_steps *s, const struct go_table *t, const struct go_function *f, uint32_t values)
{
	*s = (struct go_steps){.table = t, .pos = t->values + values, .start = f->start, .end = f->start, .value = -1,
			       .stop = values ? f->end : f->start};
}

static int go_steps_byte(struct go_steps *s)
{
	if (s->window_pos == s->window_len) {
		uint64_t room = s->pos < s->table->end ? s->table->end - s->pos : 0;
		ssize_t n = binary_read_vaddr(s->table->binary, s->pos, s->window, MIN(room, sizeof(s->window)));

		if (n <= 0)
			return -EBADMSG;
		s->pos += (uint64_t)n;
		s->window_len = (uint32_t)n;
		s->window_pos = 0;
	}
	return s->window[s->window_pos++];
}

/* At most 32 bits. */
static int go_steps_number(struct go_steps *s, uint32_t *ret)
{
	uint32_t v = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		int byte = go_steps_byte(s);

		if (byte < 0)
			return byte;
		v |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

int go_steps_next(struct go_steps *s)
{
	uint32_t change, code;

	if (s->end >= s->stop)
		return 0;
	if (s->count == GO_STEPS_MAX || go_steps_number(s, &change) < 0)
		return -EBADMSG;
	/* A change of 0 ends the table, but for the first one. */
	if (!change && s->count)
		return 0;
	if (go_steps_number(s, &code) < 0 || !code)
		return -EBADMSG;
	s->count++;
	s->value += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
	s->start = s->end;
	s->end = MIN(s->end + (uint64_t)code * s->table->quantum, s->stop);
	return 1;
}

int go_value(const struct go_table *t, const struct go_function *f, uint32_t values, uint64_t vaddr, int64_t *ret)
{
	struct go_steps s;
	int r;

	go_steps_init(&s, t, f, values);
	while ((r = go_steps_next(&s)) > 0)
		if (vaddr < s.end) {
			*ret = s.value;
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

/* --- strings --- */

static int go_string(const struct go_table *t, uint64_t at, char to[GO_NAME_MAX])
{
	size_t have = 0;

	/* Most are short. */
	for (size_t want = 64; have < GO_NAME_MAX - 1; want = GO_NAME_MAX - 1) {
		ssize_t n = at < t->end ? binary_read_vaddr(t->binary, at, to, MIN(want, t->end - at)) : 0;

		if (n <= 0)
			return -EBADMSG;
		have = (size_t)n;
		to[have] = '\0';
		if (memchr(to, '\0', have) || have < want)
			break;
	}
	return *to ? 0 : -ENOENT;
}

int go_name(const struct go_table *t, uint32_t name, char to[GO_NAME_MAX])
{
	return go_string(t, t->names + name, to);
}

int go_file(const struct go_table *t, const struct go_function *f, int64_t number, char to[GO_NAME_MAX])
{
	uint64_t list = t->format == GO_1_2 ? t->files : t->units + 4 * (uint64_t)f->unit;
	uint32_t offset;

	/* Files of format 1.2 are numbered from 1; the first word is how many there are. */
	if (number < (t->format == GO_1_2) || number > UINT32_MAX)
		return -ENOENT;
	if (!go_read(t, list + 4 * (uint64_t)number, &offset, sizeof(offset)))
		return -EBADMSG;
	if (offset == DATA_NONE)
		return -ENOENT; /* the linker dropped it */
	return go_string(t, (t->format == GO_1_2 ? t->at : t->files) + offset, to);
}

/* --- inlined calls --- */

/* A name begins where the one before it ends. */
static bool go_begins_name(const struct go_table *t, uint32_t name)
{
	uint8_t before;

	return !name || (t->names + name < t->end && go_read(t, t->names + name - 1, &before, 1) && !before);
}

int go_inlined_at(const struct go_table *t, const struct go_function *f, int64_t number, struct go_inlined *ret)
{
	bool narrow = t->format == GO_1_20;
	unsigned size = narrow ? 16 : 20;
	uint8_t raw[20];
	uint32_t call;

	if (!f->tree || number < 0 || number > UINT16_MAX)
		return -ENOENT;
	if (binary_read_vaddr(t->binary, f->tree + size * (uint64_t)number, raw, size) != (ssize_t)size)
		return -EBADMSG;
	call = go_u32(raw, narrow ? 8 : 16);
	*ret = (struct go_inlined){.name = go_u32(raw, narrow ? 4 : 12),
				   .start_line = narrow ? go_u32(raw, 12) : 0,
				   .call = f->start + call};
	/* In format 1.2, strings are merged by the linker: a name may be the end of another. */
	if (call >= f->end - f->start || (t->format != GO_1_2 && !go_begins_name(t, ret->name)))
		return -EBADMSG;
	return 0;
}
