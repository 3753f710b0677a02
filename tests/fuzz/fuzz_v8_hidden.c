// SPDX-License-Identifier: Apache-2.0
/*
 * A program that shows nothing of its V8, as a file and as a process that mean harm: both are sound, the input is laid over
 * the file, and over the process, in pieces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BYTES (256u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/code_world.h"
#include "tests/lib/v8_hidden_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the first bytes: an offset in what has a meaning, and a length. */
static size_t lay_over_file(struct v8_hidden_file *f, const uint8_t *data, size_t size)
{
	const size_t at = VH_RODATA + (size_t)(data[0] | data[1] << 8) % (VH_NAMES - VH_RODATA - 64);
	const size_t len = MIN(size - 3, (size_t)data[2] % 64);

	memcpy((uint8_t *)f + at, data + 3, len);
	return 3 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct v8_hidden_file image;
	const struct v8_row *row = v8_rows;
	struct runtime_attached a = {0};
	struct runtime_file file = {.bias = WORLD};
	char why[RUNTIME_WHY_MAX] = "";
	size_t i = 0;

	if (size < 4)
		return 0;
	while (row->major != 15)
		row++;
	memset(world, 0, sizeof(world));
	vh_file(&image);
	if (data[i++] & 1)
		i += lay_over_file(&image, data + i, size - i);
	vh_put_process(&image, row);
	while (i < size)
		i += world_lay(data + i, size - i);
	memory_question(&memory);
	file.binary = vh_open(&image);
	if (file.binary && v8_attach(&file, &memory, &a, why) == 0 && !runtime_attached_sound(&a))
		abort();
	binary_put(file.binary);
	return 0;
}
