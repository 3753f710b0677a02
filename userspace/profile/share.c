// SPDX-License-Identifier: Apache-2.0
#include "profile/share.h"

#include "base/array.h"

static bool share_fits(const struct share *sh, uint32_t workload, size_t len)
{
	size_t left = sh->max - sh->used;

	return len <= left && sh->of[workload] + len <= left - len;
}

bool share_take(struct share *sh, uint32_t workload, struct str *s)
{
	uint64_t key = (uint64_t)(uintptr_t)s;

	if (!s || map_find(&sh->strings, key))
		return true;
	if (array_reach(&sh->of, workload, &sh->cap, sizeof(*sh->of)) < 0 || !share_fits(sh, workload, s->len) ||
	    map_put(&sh->strings, key, 0) < 0)
		return false;
	str_ref(s);
	sh->used += s->len;
	sh->of[workload] += s->len;
	return true;
}

void share_done(struct share *sh)
{
	map_for_each(&sh->strings, slot)
		str_put((struct str *)(uintptr_t)slot->key);
	map_done(&sh->strings);
	free(sh->of);
	*sh = (struct share){.max = sh->max};
}

size_t share_memory(const struct share *sh)
{
	return sh->used + sh->strings.count * sizeof(struct str) + sh->strings.cap * sizeof(struct map_slot) +
	       sh->cap * sizeof(*sh->of);
}
