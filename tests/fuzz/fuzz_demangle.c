// SPDX-License-Identifier: Apache-2.0
/* Names from hostile string tables. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *name = malloc(size + 3), *out = NULL;

	if (!name)
		return 0;
	/* Most inputs should get past the first two letters. */
	memcpy(name, size && data[0] & 1 ? "_Z" : "_R", 2);
	memcpy(name + 2, data, size);
	name[size + 2] = '\0';
	out = symbol_demangle(name);
	if (out && (!*out || strlen(out) > 16384))
		abort();
	return 0;
}
