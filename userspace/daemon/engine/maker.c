// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/maker.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/ledger.h"

#define MAKER_NAME_MAX 64

/* The file of the next frame that is not generated itself. */
static const struct mapped_file *maker_find(const struct unwind_stack *stack, uint32_t index)
{
	for (uint32_t i = index + 1; i < stack->count; i++) {
		const struct frame *f = &stack->frames[i];

		if (f->kind != KIND_NATIVE || f->flags & FRAME_SIGNAL || !f->map)
			return NULL;
		if (!mapped_file_is_generated(f->map->file))
			return f->map->file->kind == MAPPED_FILE ? f->map->file : NULL;
	}
	return NULL;
}

/* The length of a file's name without what tells versions of a library apart: "libfoo" of "libfoo.so.1.2". */
static size_t maker_stem(const char *name)
{
	const char *suffix = strstr(name, ".so");

	return suffix && suffix > name && (suffix[3] == '\0' || suffix[3] == '.') ? (size_t)(suffix - name) : strlen(name);
}

bool maker_name_frame(const struct unwind_stack *stack, uint32_t index, struct frame *f)
{
	const struct mapped_file *file = maker_find(stack, index);
	const char *path = file ? str_c(file->path) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;
	char text[MAKER_NAME_MAX + 64];
	struct str *function;

	if (!name || !*name)
		return false;
	snprintf(text, sizeof(text), "[generated code, called by %.*s]", (int)MIN(maker_stem(name), (size_t)MAKER_NAME_MAX),
		 name);
	function = str_get_c(text);
	if (!function)
		return false;
	*f = (struct frame){.kind = KIND_JIT,
			    .flags = f->flags | FRAME_NAMED,
			    .guess = f->guess,
			    .named_by = NAME_RAW,
			    .function = function};
	return true;
}
