// SPDX-License-Identifier: Apache-2.0
/* A line number table of any version. */
#include <stdint.h>
#include <stdlib.h>

#include "symbol/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint64_t rows, files;
};

static int take(void *ctx, const struct line_row *row)
{
	struct seen *s = ctx;

	s->files += row->file;
	return ++s->rows > 1000000 ? -1 : 0;
}

/* The names' own sections are the same bytes: offsets meet something. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct line_sections s = {.line = {data, size}, .line_str = {data, size}, .str = {data, size}};
	struct seen seen = {0};
	struct line_table t;

	if (line_table_open(&s, 0, "/dir", &t) < 0)
		return 0;
	line_table_run(&t, take, &seen);
	line_table_done(&t);
	return 0;
}
