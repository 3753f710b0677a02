// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a portable PDB, behind two that say of which method the lines are sought. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct runtime_function *f)
{
	uint32_t seen = 0;

	if (!f->nr_lines || f->nr_lines > RUNTIME_LINES_MAX || !f->file[0] || !memchr(f->file, '\0', sizeof(f->file)))
		abort();
	for (uint32_t i = 0; i < f->nr_lines; i++) {
		if ((i && f->lines[i].position < f->lines[i - 1].position) || (f->lines[i].line && f->lines[i].line < f->start_line))
			abort();
		seen |= f->lines[i].line;
	}
	if (!seen != !f->start_line)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct runtime_function function;
	uint16_t row;

	if (size < sizeof(row))
		return 0;
	memcpy(&row, data, sizeof(row));
	memset(&function, 0, sizeof(function));
	/* To the byte: what is read past the end is seen. */
	uint8_t *exact = malloc(size - sizeof(row) + 1);

	if (!exact)
		return 0;
	memcpy(exact + 1, data + sizeof(row), size - sizeof(row));
	if (dotnet_pdb_lines(exact + 1, size - sizeof(row), row, &function) == 0)
		check(&function);
	free(exact);
	return 0;
}
