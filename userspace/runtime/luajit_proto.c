// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/luajit.h"

#define PIECE 1024u

bool luajit_is_string(struct memory *m, uint64_t at)
{
	uint8_t type;

	return memory_u8(m, at + LUAJIT_GCT, &type) == 0 && type == LUAJIT_STRING;
}

int luajit_proto_read(struct memory *m, uint64_t at, struct luajit_proto *ret)
{
	uint8_t b[LUAJIT_PT_BYTES];
	int err = memory_read(m, at, b, sizeof(b));

	if (err)
		return err;
	if (b[LUAJIT_GCT] != LUAJIT_PROTO)
		return -ESTALE;
	*ret = (struct luajit_proto){.at = at, .sizeuv = b[LUAJIT_PT_SIZEKGC + 12]};
	memcpy(&ret->sizebc, b + LUAJIT_PT_SIZEBC, sizeof(ret->sizebc));
	memcpy(&ret->k, b + LUAJIT_PT_K, sizeof(ret->k));
	memcpy(&ret->sizekgc, b + LUAJIT_PT_SIZEKGC, sizeof(ret->sizekgc));
	memcpy(&ret->chunkname, b + LUAJIT_PT_CHUNKNAME, sizeof(ret->chunkname));
	memcpy(&ret->firstline, b + LUAJIT_PT_FIRSTLINE, sizeof(ret->firstline));
	memcpy(&ret->numline, b + LUAJIT_PT_NUMLINE, sizeof(ret->numline));
	memcpy(&ret->lineinfo, b + LUAJIT_PT_LINEINFO, sizeof(ret->lineinfo));
	memcpy(&ret->uvinfo, b + LUAJIT_PT_UVINFO, sizeof(ret->uvinfo));
	memcpy(&ret->varinfo, b + LUAJIT_PT_VARINFO, sizeof(ret->varinfo));
	if (memory_u64(m, ret->chunkname + LUAJIT_STR_HEAD, &ret->chunk_head))
		return -ESTALE;
	return ret->sizebc && ret->sizebc <= LUAJIT_BC_MAX ? 0 : -ESTALE;
}

/* Lines are stored less the function's first one, in as many bytes as its last one needs. */
static uint32_t luajit_line_bytes(const struct luajit_proto *p)
{
	return p->numline < 256 ? 1 : p->numline < 65536 ? 2 : 4;
}

static uint32_t luajit_line_at(const struct luajit_proto *p, const uint8_t *bytes, uint32_t i)
{
	uint32_t width = luajit_line_bytes(p), line = 0;

	memcpy(&line, bytes + (size_t)i * width, width);
	return p->firstline + MIN(line, p->numline);
}

int luajit_lines(struct memory *m, const struct luajit_proto *p, struct runtime_function *ret)
{
	uint32_t width = luajit_line_bytes(p), n = p->sizebc - 1;
	uint8_t bytes[PIECE];

	ret->nr_lines = 0;
	if (!p->lineinfo)
		return 0;
	runtime_add_line(ret, 0, p->firstline);
	/* Instruction 0 is the function's head, and has no entry. */
	for (uint32_t i = 0; i < n; i += PIECE / width) {
		uint32_t nr = MIN(n - i, PIECE / width);

		if (memory_read(m, p->lineinfo + (uint64_t)i * width, bytes, (size_t)nr * width))
			return -EFAULT;
		for (uint32_t k = 0; k < nr; k++)
			if (!runtime_add_line(ret, i + k + 1, luajit_line_at(p, bytes, k)))
				return 0;
	}
	/* Behind the last one nothing is known: a position that is not. */
	runtime_add_line(ret, p->sizebc, 0);
	return 0;
}
