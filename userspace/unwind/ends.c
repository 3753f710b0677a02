// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "unwind/unwind.h"

static const struct {
	const char *name;
	const char *marker;
} ends[UNWIND_END_NR] = {
#define X(NAME, text, mark) [UNWIND_##NAME] = {.name = text, .marker = mark},
	UNWIND_ENDS(X)
#undef X
};

const char *unwind_end_name(enum unwind_end end)
{
	return (size_t)end < ARRAY_SIZE(ends) ? ends[end].name : "unknown";
}

const char *unwind_marker(uint32_t marker)
{
	if (marker == FRAME_MARKER_EMPTY)
		return "[no stack]";
	if (marker == FRAME_MARKER_MISFIT)
		return "[native and interpreted frames do not fit]";
	if (marker == FRAME_MARKER_SHORT)
		return "[cut: outer interpreted frames missing]";
	return marker < ARRAY_SIZE(ends) ? ends[marker].marker : "[cut]";
}
