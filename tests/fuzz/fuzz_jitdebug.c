// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the entries of a jitdump's debug information, after the code's size, the pc in it, and their number. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "symbol/jitdebug.h"

#define START 0x7000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct jit_place *p, const uint8_t *entries, size_t len)
{
	if ((const uint8_t *)p->file < entries || (const uint8_t *)p->file + p->file_len >= entries + len ||
	    !utf8_is_clean(p->file, p->file_len) || p->line > INT32_MAX || p->column > INT32_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) uint8_t *entries = NULL;
	struct jit_code code = {.start = START};
	struct jit_place place;
	uint16_t head[2];
	uint64_t nr;

	if (size < sizeof(head) + 1 || !(entries = malloc(size)))
		return 0;
	memcpy(head, data, sizeof(head));
	code.size = head[0];
	code.of_v8 = head[1] & 1;
	nr = data[4] == 0xff ? UINT64_MAX : data[4];
	data += 5;
	size -= 5;
	memcpy(entries, data, size);
	entries = realloc(entries, size ? size : 1); /* to the byte: what is read past the end is seen */
	if (entries && jit_place_find(entries, size, nr, &code, START + (uint64_t)head[1], &place) == 0)
		check(&place, entries, size);
	return 0;
}
