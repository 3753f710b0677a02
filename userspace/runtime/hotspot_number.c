// SPDX-License-Identifier: Apache-2.0
/*
 * HotSpot's compressed numbers: five bytes at most, each with six bits, of which
 * the last one alone is below a limit. Since 20 no byte is zero. OpenJDK,
 * unsigned5.hpp; before, compressedStream.cpp.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define NUMBER_BYTES 5
#define NUMBER_BITS  6

void hotspot_numbers_at(struct hotspot_numbers *n, struct memory *m, uint16_t version, uint64_t at)
{
	n->memory = m;
	n->version = version;
	n->at = at;
	if (at < n->from || at - n->from >= n->nr)
		n->nr = n->used = 0;
	else
		n->used = (uint32_t)(at - n->from);
}

/* As far as the page goes: what lies behind it may not exist. */
static int hotspot_read_ahead(struct hotspot_numbers *n)
{
	size_t len = MIN(sizeof(n->ahead), (size_t)(4096 - n->at % 4096));
	int err = memory_read(n->memory, n->at, n->ahead, len);

	n->nr = err ? 0 : (uint32_t)len;
	n->from = n->at;
	n->used = 0;
	return err;
}

int hotspot_byte(struct hotspot_numbers *n, uint8_t *ret)
{
	int err = n->used == n->nr ? hotspot_read_ahead(n) : 0;

	if (err)
		return err;
	*ret = n->ahead[n->used++];
	n->at++;
	return 0;
}

int hotspot_unsigned(struct hotspot_numbers *n, uint32_t *ret)
{
	uint32_t excluded = n->version >= 20, limit = 256 - 64 - excluded, sum = 0;
	uint8_t byte;

	for (uint32_t i = 0; i < NUMBER_BYTES; i++) {
		int err = hotspot_byte(n, &byte);

		if (err)
			return err;
		if (byte < excluded)
			return -EBADMSG;
		sum += (uint32_t)(byte - excluded) << (NUMBER_BITS * i);
		if (byte - excluded < limit)
			break;
	}
	*ret = sum;
	return 0;
}

int hotspot_signed(struct hotspot_numbers *n, int32_t *ret)
{
	uint32_t value;
	int err = hotspot_unsigned(n, &value);

	if (!err)
		*ret = (int32_t)(value >> 1 ^ (0 - (value & 1)));
	return err;
}
