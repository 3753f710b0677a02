// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/target_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NAMES_MAX 4096

struct target_name {
	bool known;
	bool used; /* looked up since the last drop of names */
	char text[];
};

void target_names_done(struct target_names *n)
{
	map_for_each(&n->known, slot)
		free((void *)(uintptr_t)slot->value);
	map_done(&n->known);
	buf_done(&n->wanted);
	*n = (struct target_names){0};
}

static uint64_t target_names_key(const char *id)
{
	return hash_bytes(id, HOST_CONTAINER_ID, 0);
}

/* Drops the names of containers that are gone. */
static void target_names_drop_unused(struct target_names *n)
{
	struct map used = {0};

	map_for_each(&n->known, slot) {
		struct target_name *name = (void *)(uintptr_t)slot->value;

		if (!name->used || map_put_ptr(&used, slot->key, name) < 0)
			free(name);
		else
			name->used = false;
	}
	map_done(&n->known);
	n->known = used;
}

static int target_names_put(struct target_names *n, const char *id, const char *text, size_t len, bool known)
{
	uint64_t key = target_names_key(id);
	struct target_name *old = map_find_ptr(&n->known, key), *name;

	if (!old && n->known.count >= NAMES_MAX)
		target_names_drop_unused(n);
	if (!old && n->known.count >= NAMES_MAX)
		return -ENOSPC;
	name = malloc(sizeof(*name) + len + 1);
	if (!name || map_put_ptr(&n->known, key, name) < 0) {
		free(name);
		return -ENOMEM;
	}
	*name = (struct target_name){.known = known, .used = old ? old->used : true};
	memcpy(name->text, text, len);
	name->text[len] = '\0';
	free(old);
	return 0;
}

const char *target_names_find(struct target_names *n, const char *id)
{
	struct target_name *name = map_find_ptr(&n->known, target_names_key(id));

	if (name) {
		name->used = true;
		return name->known ? name->text : NULL;
	}
	/* Beyond the bound, or without memory, a container has no name. */
	if (strlen(id) != HOST_CONTAINER_ID || target_names_put(n, id, "", 0, false) < 0)
		return "";
	buf_add(&n->wanted, id, HOST_CONTAINER_ID);
	return NULL;
}

void target_names_want_all(struct target_names *n)
{
	n->all_wanted = true;
}

bool target_names_settled(const struct target_names *n)
{
	return !n->open && !n->all_wanted && !n->wanted.len;
}

bool target_names_has_question(const struct target_names *n)
{
	return !n->open && !target_names_settled(n);
}

bool target_names_question(struct target_names *n, char path[HOST_PATH_MAX])
{
	size_t most = (HOST_PATH_MAX - 1) / HOST_CONTAINER_ID * HOST_CONTAINER_ID;

	if (!target_names_has_question(n))
		return false;
	n->open = true;
	n->asked = n->all_wanted ? 0 : MIN(n->wanted.len, most);
	n->all_wanted = false;
	if (n->asked)
		memcpy(path, n->wanted.data, n->asked);
	path[n->asked] = '\0';
	return true;
}

static void target_names_take(struct target_names *n, const char *data, size_t len)
{
	const char *text, *end;

	while (len > HOST_CONTAINER_ID) {
		text = data + HOST_CONTAINER_ID;
		end = memchr(text, '\0', len - HOST_CONTAINER_ID);
		if (!end)
			return;
		target_names_put(n, data, text, (size_t)(end - text), true);
		len -= (size_t)(end + 1 - data);
		data = end + 1;
	}
}

/* Containers of the question that the answer does not name. */
static void target_names_settle_asked(struct target_names *n)
{
	for (size_t at = 0; at < n->asked; at += HOST_CONTAINER_ID) {
		const char *id = (const char *)n->wanted.data + at;
		const struct target_name *name = map_find_ptr(&n->known, target_names_key(id));

		if (!name || !name->known)
			target_names_put(n, id, "", 0, true);
	}
	n->wanted.failed = false; /* a later question may find memory */
	n->wanted.len -= n->asked;
	if (n->wanted.len)
		memmove(n->wanted.data, n->wanted.data + n->asked, n->wanted.len);
	n->asked = 0;
}

void target_names_answer(struct target_names *n, const char *data, size_t len)
{
	if (!n->open)
		return;
	n->open = false;
	target_names_take(n, data, len);
	target_names_settle_asked(n);
}
