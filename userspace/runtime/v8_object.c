// SPDX-License-Identifier: Apache-2.0
/*
 * Objects of V8's heap, by tagged addresses: the lowest bits are 01, of weak ones
 * 11; a small integer has zeros below and its value in the upper half (V8,
 * globals.h: pointers are not compressed in node).
 */
#include <errno.h>

#include "runtime/v8.h"

#define TAG_MASK 3u

bool v8_is_object(uint64_t word)
{
	return (word & TAG_MASK) == 1 && word > 4096 && word < 1ULL << 48; /* of arm64; x86-64 has 47 */
}

int v8_field(struct memory *m, uint64_t object, uint32_t offset, uint64_t *ret)
{
	return v8_is_object(object) ? memory_u64(m, object - 1 + offset, ret) : -EBADMSG;
}

int v8_smi(struct memory *m, uint64_t object, uint32_t offset, int32_t *ret)
{
	uint64_t word;
	int err = v8_field(m, object, offset, &word);

	if (err)
		return err;
	if ((uint32_t)word)
		return -EBADMSG;
	*ret = (int32_t)(word >> 32);
	return 0;
}

int v8_length(const struct v8 *v, struct memory *m, uint64_t object, uint16_t offset, int32_t *ret)
{
	uint32_t length;
	int err;

	if (!v8_row(v)->raw_lengths)
		return v8_smi(m, object, offset, ret);
	err = v8_is_object(object) ? memory_u32(m, object - 1 + offset, &length) : -EBADMSG;
	if (err)
		return err;
	*ret = (int32_t)length;
	return length > INT32_MAX ? -EBADMSG : 0;
}

/* The map is the first word. */
int v8_type(const struct v8 *v, struct memory *m, uint64_t object, uint16_t *ret)
{
	uint64_t map;
	int err = v8_field(m, object, 0, &map);

	if (err)
		return err;
	return v8_is_object(map) ? memory_read(m, map - 1 + v->map_type, ret, sizeof(*ret)) : -EBADMSG;
}

bool v8_is(const struct v8 *v, struct memory *m, uint64_t object, uint16_t type)
{
	uint16_t have;

	return v8_type(v, m, object, &have) == 0 && have == type;
}

/* In place of the map the garbage collector leaves the address of the copy, without a tag. */
int v8_forward(struct memory *m, uint64_t object, uint64_t *ret)
{
	uint64_t map;
	int err = v8_field(m, object, 0, &map);

	if (!err)
		*ret = map % 8 == 0 && map ? map + 1 : object;
	return err;
}
