// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a portable PDB, behind two that say of which method the lines are sought; and whether it has an id that
 * is known.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/dotnet_pdb.h"

#include "runtime/dotnet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct runtime_function *f)
{
	uint32_t seen = 0;

	if (!f->nr_lines || f->nr_lines > RUNTIME_LINES_MAX || !f->file[0] || !memchr(f->file, '\0', sizeof(f->file)))
		abort();
	for (uint32_t i = 0; i < f->nr_lines; i++) {
		if (i && f->lines[i].position < f->lines[i - 1].position)
			abort();
		if (f->lines[i].line && f->lines[i].line < f->start_line)
			abort();
		seen |= f->lines[i].line;
	}
	if (!seen != !f->start_line)
		abort();
}

/* That id is in it then. */
static void check_id(const uint8_t *bytes, size_t len)
{
	uint8_t id[DOTNET_PDB_ID];

	memcpy(id, dotnet_pdb_id, sizeof(id));
	if (dotnet_pdb_check(bytes, len, id) == 0 && !memmem(bytes, len, id, sizeof(id)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct runtime_function function;
	_cleanup_(freep) uint8_t *exact = malloc(size); /* to the byte: what is read past the end is seen */
	uint16_t row;

	if (size < sizeof(row) || !exact)
		return 0;
	memcpy(&row, data, sizeof(row));
	memcpy(exact, data, size);
	check_id(exact + sizeof(row), size - sizeof(row));
	memset(&function, 0, sizeof(function));
	if (dotnet_pdb_lines(exact + sizeof(row), size - sizeof(row), row, &function) == 0)
		check(&function);
	return 0;
}
