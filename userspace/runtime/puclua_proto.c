// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"

#define PIECE	       1024u
#define PROTO_BYTES    128u
#define LINE_ABSOLUTE  (-0x80) /* ABSLINEINFO: the line is in abslineinfo (ldebug.h) */
#define ABSOLUTE_BYTES 8u      /* of AbsLineInfo: pc, line */

static uint64_t puclua_u64(const uint8_t *b, uint8_t at)
{
	uint64_t v;

	memcpy(&v, b + at, sizeof(v));
	return v;
}

static uint32_t puclua_u32(const uint8_t *b, uint8_t at)
{
	uint32_t v;

	memcpy(&v, b + at, sizeof(v));
	return v;
}

static int puclua_proto_read_told(struct memory *m, struct puclua_proto *p)
{
	uint64_t head = 0;

	p->told = p->k;
	if (puclua_row_last_is_code(p->l))
		return 0;
	if (p->source && memory_u64(m, p->source + PUCLUA_STRING_HEAD, &head))
		return -EFAULT;
	p->told = head >> 32;
	return 0;
}

int puclua_proto_read(struct memory *m, const struct puclua_layout *l, uint64_t at, struct puclua_proto *ret)
{
	uint8_t b[PROTO_BYTES];
	int err = memory_read(m, at, b, l->pt.bytes);

	if (err)
		return err;
	if (b[PUCLUA_TAG] != l->pt.tag)
		return -ESTALE;
	*ret = (struct puclua_proto){
		.l = l, .at = at, .k = puclua_u64(b, l->pt.k), .code = puclua_u64(b, l->pt.code), .p = puclua_u64(b, l->pt.p),
		.lineinfo = puclua_u64(b, l->pt.lineinfo), .locvars = puclua_u64(b, l->pt.locvars),
		.upvalues = puclua_u64(b, l->pt.upvalues), .source = puclua_u64(b, l->pt.source),
		.sizeupvalues = puclua_u32(b, l->pt.sizeupvalues), .sizek = puclua_u32(b, l->pt.sizek),
		.sizecode = puclua_u32(b, l->pt.sizecode), .sizelineinfo = puclua_u32(b, l->pt.sizelineinfo),
		.sizep = puclua_u32(b, l->pt.sizep), .sizelocvars = puclua_u32(b, l->pt.sizelocvars),
		.linedefined = puclua_u32(b, l->pt.linedefined), .lastlinedefined = puclua_u32(b, l->pt.lastlinedefined),
	};
	if (l->pt.abslineinfo) {
		ret->abslineinfo = puclua_u64(b, l->pt.abslineinfo);
		ret->sizeabslineinfo = puclua_u32(b, l->pt.sizeabslineinfo);
	}
	ret->nups = l->pt.nups ? b[l->pt.nups] : 0;
	if (puclua_proto_read_told(m, ret))
		return -ESTALE;
	return ret->sizecode && ret->sizecode <= PUCLUA_CODE_MAX ? 0 : -ESTALE;
}

int puclua_string(struct memory *m, const struct puclua_layout *l, uint64_t at, char *to, size_t size)
{
	uint8_t tag;

	if (!at || memory_u8(m, at + PUCLUA_TAG, &tag) || (tag & 15) != PUCLUA_STRING ||
	    memory_string(m, at + l->string_bytes, to, size) || !*to)
		return -ENOENT;
	return 0;
}

/* --- lines --- */

static bool puclua_add_line(const struct puclua_proto *p, struct runtime_function *f, uint32_t position, int64_t line)
{
	uint32_t known = line >= 0 && line <= UINT32_MAX ? (uint32_t)line : 0;

	/* Of a file's main function, no last line is written down. */
	if (known < p->linedefined || (p->linedefined && known > p->lastlinedefined))
		known = 0;
	return runtime_add_line(f, position, known);
}

/* 5.1 to 5.3: the line of each instruction. -EFAULT. */
static int puclua_lines_each(struct memory *m, const struct puclua_proto *p, uint32_t nr, struct runtime_function *ret)
{
	uint32_t line[PIECE / 4];

	for (uint32_t i = 0; i < nr; i += ARRAY_SIZE(line)) {
		uint32_t n = MIN(nr - i, (uint32_t)ARRAY_SIZE(line));

		if (memory_read(m, p->lineinfo + 4ull * i, line, 4ul * n))
			return -EFAULT;
		for (uint32_t k = 0; k < n; k++)
			if (!puclua_add_line(p, ret, i + k, line[k]))
				return 0;
	}
	return 0;
}

/* 5.4: what a line is more than the one before, linedefined at first; or absolute, in a table beside. -EFAULT. */
static int puclua_lines_deltas(struct memory *m, const struct puclua_proto *p, uint32_t nr,
			       struct runtime_function *ret)
{
	int64_t line = p->linedefined;
	uint32_t absolute = 0, value;
	int8_t delta[PIECE];

	for (uint32_t i = 0; i < nr; i += PIECE) {
		uint32_t n = MIN(nr - i, PIECE);

		if (memory_read(m, p->lineinfo + i, delta, n))
			return -EFAULT;
		for (uint32_t k = 0; k < n; k++) {
			if (delta[k] != LINE_ABSOLUTE) {
				line += delta[k];
			} else {
				if (absolute >= p->sizeabslineinfo ||
				    memory_u32(m, p->abslineinfo + (uint64_t)ABSOLUTE_BYTES * absolute++ + 4, &value))
					return -EFAULT;
				line = value;
			}
			if (!puclua_add_line(p, ret, i + k, line))
				return 0;
		}
	}
	return 0;
}

int puclua_lines(struct memory *m, const struct puclua_proto *p, struct runtime_function *ret)
{
	uint32_t nr = MIN(p->sizelineinfo, p->sizecode);
	int err;

	ret->nr_lines = 0;
	if (!p->lineinfo)
		return 0;
	err = p->l->pt.abslineinfo ? puclua_lines_deltas(m, p, nr, ret) : puclua_lines_each(m, p, nr, ret);
	/* Behind the last one nothing is known: a position that is not. */
	if (!err)
		runtime_add_line(ret, p->sizecode, 0);
	return err;
}
