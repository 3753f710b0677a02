// SPDX-License-Identifier: Apache-2.0
/* Dynamic symbols of a hostile file, as a search for callers reads them: eight bytes of an address, then the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/imports.h"

#define SYMBOLS 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same question has the same answer, while there is work left for it. */
static void ask(struct imports *m, struct binary *b, uint64_t function)
{
	uint32_t left = SYMBOLS, again = SYMBOLS;
	bool calls = imports_function(m, b, b, function, &left), exports = imports_is_exported(m, b, function, &left);

	if (left > SYMBOLS || (calls && !exports && left))
		abort();
	if (left && imports_function(m, b, b, function, &again) != calls)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct imports m;
	struct binary *b = NULL;
	uint64_t function;

	if (size < sizeof(function))
		return 0;
	memcpy(&function, data, sizeof(function));
	m = (struct imports){0};
	if (binary_open_memory(data + sizeof(function), size - sizeof(function), "/fuzz", &b) == 0) {
		ask(&m, b, function);
		ask(&m, b, b->entry);
		ask(&m, b, 0);
	}
	binary_put(b);
	return 0;
}
