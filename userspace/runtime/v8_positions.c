// SPDX-License-Identifier: Apache-2.0
/*
 * Tables from offsets of code to places of the source: pairs of differences from
 * the row before, as numbers of seven bits a byte whose lowest bit is the sign
 * (V8, source-position-table.cc).
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define TABLE_MAX   (1u << 20)
#define NUMBER_BITS 64
#define ENTRY	    (-1) /* offset of a function's entry (V8, kFunctionEntryBytecodeOffset), which differences start from */

static bool v8_positions_are_bytes(const struct v8 *v, struct memory *m, uint64_t table)
{
	uint16_t type;

	return v8_type(v, m, table, &type) == 0 &&
	       (type == v->type_bytes || (v8_row(v)->type_trusted_bytes && type == v8_row(v)->type_trusted_bytes));
}

void v8_positions_begin(struct memory *m, uint64_t at, uint64_t len, struct v8_positions *ret)
{
	v8_bytes_open(&ret->bytes, m, at, at + len);
	ret->offset = ENTRY;
	ret->position = 0;
}

int v8_positions_open(const struct v8 *v, struct memory *m, uint64_t table, struct v8_positions *ret)
{
	int32_t length;
	int err = v8_positions_are_bytes(v, m, table) ? v8_length(v, m, table, v->array_length, &length) : -EBADMSG;

	if (err)
		return err;
	if (length < 0 || length > (int32_t)TABLE_MAX)
		return -EBADMSG;
	v8_positions_begin(m, table - 1 + v->array_data, (uint32_t)length, ret);
	return 0;
}

static int v8_positions_number(struct v8_positions *p, int64_t *ret)
{
	uint64_t n;
	int err = v8_bytes_number(&p->bytes, NUMBER_BITS, &n);

	if (!err)
		*ret = (int64_t)(n >> 1 ^ (0 - (n & 1)));
	return err;
}

/* An offset's difference is below zero for places within a statement. */
int v8_positions_next(struct v8_positions *p)
{
	int64_t offset, position;
	int err = v8_positions_number(p, &offset);

	if (!err)
		err = v8_positions_number(p, &position);
	if (err)
		return err;
	offset = offset < 0 ? -(offset + 1) : offset;
	if (offset > (int64_t)INT32_MAX - p->offset)
		return -EBADMSG;
	p->offset += (int32_t)offset;
	p->position = (int64_t)((uint64_t)p->position + (uint64_t)position);
	return 0;
}
