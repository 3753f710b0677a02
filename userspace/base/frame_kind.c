// SPDX-License-Identifier: Apache-2.0
#include "base/frame_kind.h"

#include <string.h>
#include <strings.h>

static const struct {
	const char *type, *label;
} kinds[] = {
#define X(NAME, type, label, hue, spread, saturation, lightness) {type, label},
	FRAME_KINDS(X)
#undef X
};

const char *frame_kind_type(enum frame_kind kind)
{
	return kinds[kind].type;
}

const char *frame_kind_label(enum frame_kind kind)
{
	return kinds[kind].label;
}

const char *frame_kind_name(enum frame_kind kind)
{
	return kinds[kind].type ? kinds[kind].type : kinds[kind].label;
}

enum frame_kind frame_kind_find(const char *name)
{
	int kind = 0;

	while (kind < KIND_NR && strcasecmp(frame_kind_name((enum frame_kind)kind), name) != 0 &&
	       strcasecmp(kinds[kind].label, name) != 0)
		kind++;
	return (enum frame_kind)kind;
}

enum frame_kind frame_kind_of_type(const char *type)
{
	for (int kind = 0; type && kind < KIND_NR; kind++)
		if (kinds[kind].type && strcmp(kinds[kind].type, type) == 0)
			return (enum frame_kind)kind;
	return KIND_OTHER;
}
