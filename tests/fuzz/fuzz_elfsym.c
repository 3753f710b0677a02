// SPDX-License-Identifier: Apache-2.0
/* Symbol tables, string tables, stubs and relocations of a hostile file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

#define ADDRESSES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(struct symbolizer *s, struct binary *b, uint64_t vaddr)
{
	struct symbol_result r;

	symbol_find(s, b, "file", vaddr, &r);
	if (r.count < 1 || r.count > SYMBOL_LINES_MAX || !*str_c(r.lines[0].name))
		abort();
	symbol_result_done(&r);
}

static void find_all(struct symbolizer *s, struct binary *b)
{
	for (unsigned i = 0; i < b->nr_sections && i < ADDRESSES_MAX; i++)
		for (unsigned k = 0; k < 4; k++)
			find(s, b, b->sections[i].addr + b->sections[i].size / 4 * k + k);
	for (unsigned i = 0; i < b->nr_segments; i++)
		find(s, b, b->segments[i].vaddr + b->segments[i].filesz / 2);
	find(s, b, b->entry);
	find(s, b, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer *s = NULL;
	struct symbol_stats st;
	struct binary *b = NULL;

	if (symbolizer_new(&(struct symbol_limits){.cached = 16, .table_bytes = 4096}, &s) < 0)
		return 0;
	if (binary_open_memory(data, size, "/fuzz", &b) == 0)
		find_all(s, b);
	symbolizer_stats(s, &st);
	/* The file in use stays: two tables of half the bound each, and their head. */
	if (st.table_bytes > 4096 + 512)
		abort();
	binary_put(b);
	symbolizer_free(s);
	return 0;
}
