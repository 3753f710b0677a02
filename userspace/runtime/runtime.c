// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <string.h>

#include "base/cleanup.h"

const struct runtime_ops *const runtime_list[] = {
	&runtime_cpython, &runtime_ruby, &runtime_php, &runtime_perl, &runtime_hotspot, &runtime_go,
	&runtime_v8, &runtime_beam, &runtime_dotnet, &runtime_luajit, &runtime_puclua, NULL,
};

bool runtime_add_line(struct runtime_function *f, uint32_t position, uint32_t line)
{
	const uint32_t n = f->nr_lines;

	if (n && f->lines[n - 1].line == line)
		return true;
	if (n == RUNTIME_LINES_MAX)
		return false;
	f->lines[n] = (struct runtime_line){.position = position, .line = n == RUNTIME_LINES_MAX - 1 ? 0 : line};
	f->nr_lines++;
	return f->nr_lines < RUNTIME_LINES_MAX;
}

const char *runtime_walk_end_name(uint32_t end)
{
	static const char *const names[] = {
#define X(number, NAME, name, text) [number] = name,
		OTP_WALK_ENDS(X)
#undef X
	};

	return end < ARRAY_SIZE(names) ? names[end] : NULL;
}

const char *runtime_line_file_name(uint32_t i)
{
	static const char *const names[] = {
#define X(NAME, name) [RUNTIME_LINES_##NAME] = name,
		RUNTIME_LINE_FILES(X)
#undef X
	};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

static bool runtime_index_is_known(uint32_t index)
{
	for (uint32_t i = 0; runtime_list[i]; i++)
		if (i == index)
			return true;
	return false;
}

bool runtime_attached_sound(const struct runtime_attached *a)
{
	return runtime_index_is_known(a->runtime) && memchr(a->version, '\0', sizeof(a->version)) &&
	       a->nr_loops <= RUNTIME_LOOPS && a->compiled < RUNTIME_COMPILED_NR && a->unseen <= 1;
}
