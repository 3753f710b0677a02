// SPDX-License-Identifier: Apache-2.0
/* Numbers in blobs: 1, 2 or 4 bytes, by the first of them; those with a sign have it last (ECMA-335, II.23.2). */
#include <errno.h>

#include "runtime/dotnet.h"

int dotnet_byte(struct dotnet_bytes *b, uint8_t *ret)
{
	if (b->at >= b->end)
		return -EBADMSG;
	*ret = *b->at++;
	return 0;
}

/* bits: how many it has. */
static int dotnet_number_read(struct dotnet_bytes *b, uint32_t *ret, uint32_t *bits)
{
	uint8_t first, next;
	uint32_t more;

	if (dotnet_byte(b, &first))
		return -EBADMSG;
	more = first < 0x80 ? 0 : (first < 0xc0 ? 1 : 3);
	*bits = first < 0x80 ? 7 : (first < 0xc0 ? 14 : 29);
	*ret = first < 0x80 ? first : (first < 0xc0 ? first & 0x3f : first & 0x1f);
	while (more--) {
		if (dotnet_byte(b, &next))
			return -EBADMSG;
		*ret = *ret << 8 | next;
	}
	return 0;
}

int dotnet_number(struct dotnet_bytes *b, uint32_t *ret)
{
	uint32_t bits;

	return dotnet_number_read(b, ret, &bits);
}

int dotnet_signed(struct dotnet_bytes *b, int32_t *ret)
{
	uint32_t value, bits;

	if (dotnet_number_read(b, &value, &bits))
		return -EBADMSG;
	*ret = (int32_t)(value >> 1) - (value & 1 ? 1 << (bits - 1) : 0);
	return 0;
}
