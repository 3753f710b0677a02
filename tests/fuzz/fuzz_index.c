// SPDX-License-Identifier: Apache-2.0
/* An address index that somebody else wrote: its head sealed, the rest as it comes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "symbol/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_all(struct index *x)
{
	const struct index_options o = {.inlines = true, .lines = true};
	struct symbol_result r;

	for (uint64_t at = 0; at < 64; at++) {
		if (index_find(x, at << (at % 48), &o, &r) < 0)
			continue;
		if (r.count < 1 || r.count > SYMBOL_LINES_MAX || !*str_c(r.lines[0].name))
			abort();
		symbol_result_done(&r);
	}
}

/* The head is made to fit, else no input would get past it. */
static void seal(uint8_t *copy, size_t size, const struct binary *of)
{
	struct index_head h;

	memcpy(&h, copy, sizeof(h));
	memcpy(h.magic, INDEX_MAGIC, sizeof(h.magic));
	h.version = INDEX_VERSION;
	h.file_bytes = size;
	index_identity_of(of, &h.of);
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, offsetof(struct index_head, crc));
	memcpy(copy, &h, sizeof(h));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct binary *of, *file;
	struct index *x;
	uint8_t *copy;

	if (size < sizeof(struct index_head) || binary_open_memory("of", 2, "of", &of) < 0)
		return 0;
	copy = malloc(size);
	memcpy(copy, data, size);
	seal(copy, size, of);
	if (binary_open_memory(copy, size, "index", &file) == 0 && index_open(file, of, &x) == 0) {
		find_all(x);
		index_free(x);
	}
	free(copy);
	binary_put(of);
	return 0;
}
