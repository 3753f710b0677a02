// SPDX-License-Identifier: Apache-2.0
#include "daemon/fetch.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *text;
	bool again;
} states[] = {
#define X(NAME, state_name, state_again, state_text) \
	[FETCH_##NAME] = {.name = state_name, .text = state_text, .again = state_again},
	FETCH_STATES(X)
#undef X
};

const char *fetch_state_name(uint32_t state)
{
	return state < FETCH_STATE_NR ? states[state].name : "";
}

const char *fetch_state_text(uint32_t state)
{
	return state < FETCH_STATE_NR ? states[state].text : "";
}

bool fetch_state_again(enum fetch_state state)
{
	return states[state].again;
}

enum fetch_state fetch_state_find(const char *name)
{
	for (size_t i = 0; i < FETCH_STATE_NR; i++)
		if (!strcmp(states[i].name, name))
			return (enum fetch_state)i;
	return FETCH_NONE;
}

bool fetch_id_is_sound(const char *id)
{
	size_t len = strspn(id, "0123456789abcdef");

	return !id[len] && len % 2 == 0 && len >= 4 && len < FETCH_ID_MAX;
}
