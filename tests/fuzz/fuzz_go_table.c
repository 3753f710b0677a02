// SPDX-License-Identifier: Apache-2.0
/* Input: the bytes of a loaded file from its table on, with the runtime's record of the module and inline trees. */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/go_table.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/go.h"

#define FUNCTIONS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_function(const struct go_table *t, const struct go_function *f)
{
	const uint32_t values[] = {f->sp, f->file, f->line, f->inlined};
	char text[GO_NAME_MAX];
	struct go_inlined call;
	struct go_steps s;

	(void)go_name(t, f->name, text);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		go_steps_init(&s, t, f, values[i]);
		while (go_steps_next(&s) > 0) {
			if (s.end <= s.start || s.end > f->end)
				abort();
			(void)go_file(t, f, s.value, text);
			(void)go_inlined_at(t, f, s.value, &call);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tiny tiny;
	const struct go_table *t;
	struct go_function f;
	struct binary *b;
	struct row row;

	tiny_init(&tiny, EM_X86_64, TINY_NO_HDR | TINY_NO_SECTIONS);
	memcpy(tiny.image + TINY_EH, data, MIN(size, (size_t)(TINY_SIZE - TINY_EH)));
	b = tiny_open(&tiny);
	if (!b)
		abort();
	t = go_table_get(b);
	(void)go_table_find_trees(b);
	for (uint32_t i = 0; t && i < MIN(t->count, (uint32_t)FUNCTIONS); i++)
		if (go_function_at(t, i, &f) == 0)
			read_function(t, &f);
	for (uint64_t at = TINY_CODE; at < TINY_CODE + 256; at += 7)
		(void)go_row(&arch_x86_64, b, at, &row);
	binary_put(b);
	return 0;
}
