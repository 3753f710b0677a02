// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/target_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define NAMED_MAX    4096
#define NAMELESS_MAX 4096 /* without a name, or not resolved yet */
#define ALL_PAUSE_NS (10 * NSEC_PER_SEC)
#define NONE_HOLD_NS (10 * NSEC_PER_SEC)
#define RETRY_NS     (5 * NSEC_PER_SEC) /* after a failure */
#define ASKED_MAX    ((HOST_PATH_MAX - 1) / HOST_CONTAINER_ID)

struct target_name {
	struct target_name *next; /* of the queue */
	uint32_t round;		  /* of the last lookup */
	bool queued;
	bool resolved;
	uint64_t again_ns; /* a lookup from then on queues it again */
	char *text;	   /* owned; NULL: no name, or not resolved yet */
	char id[HOST_CONTAINER_ID];
};

static void target_name_free(struct target_name *name)
{
	free(name->text);
	free(name);
}

void target_names_done(struct target_names *n)
{
	map_for_each(&n->known, slot)
		target_name_free((void *)(uintptr_t)slot->value);
	map_done(&n->known);
	*n = (struct target_names){0};
}

static uint64_t target_names_key(const char *id)
{
	return hash_bytes(id, HOST_CONTAINER_ID, 0);
}

static struct target_name *target_names_get(const struct target_names *n, const char *id)
{
	return map_find_ptr(&n->known, target_names_key(id));
}

static struct target_name *target_names_add(struct target_names *n, const char *id)
{
	struct target_name *name = calloc(1, sizeof(*name));

	if (!name || map_put_ptr(&n->known, target_names_key(id), name) < 0) {
		free(name);
		return NULL;
	}
	memcpy(name->id, id, HOST_CONTAINER_ID);
	name->round = n->round;
	return name;
}

static void target_names_enqueue(struct target_names *n, struct target_name *name)
{
	if (name->queued)
		return;
	name->queued = true;
	name->again_ns = UINT64_MAX;
	name->next = NULL;
	if (!n->first)
		n->last = &n->first;
	*n->last = name;
	n->last = &name->next;
}

/* A container beyond the bound is resolved if it has a name: the answer about all of them holds it. */
static void target_names_want_beyond(struct target_names *n, uint64_t now_ns)
{
	if (now_ns < n->all_ns)
		return;
	n->all_ns = now_ns + ALL_PAUSE_NS;
	n->all_wanted = true;
}

const char *target_names_find(struct target_names *n, const char *id, uint64_t now_ns)
{
	struct target_name *name;

	if (strlen(id) != HOST_CONTAINER_ID)
		return "";
	name = target_names_get(n, id);
	if (!name) {
		name = n->known.count - n->named < NAMELESS_MAX ? target_names_add(n, id) : NULL;
		if (name)
			target_names_enqueue(n, name);
		else
			target_names_want_beyond(n, now_ns);
		return NULL;
	}
	name->round = n->round;
	if (now_ns >= name->again_ns)
		target_names_enqueue(n, name);
	if (!name->resolved)
		return NULL;
	return name->text ? name->text : "";
}

/* What is queued is dropped once it was asked for. */
static bool target_name_is_gone(const struct target_names *n, const struct target_name *name)
{
	return n->round - name->round > 1 && !name->queued;
}

void target_names_end_round(struct target_names *n)
{
	struct target_name *name;

	map_for_each(&n->known, slot) {
		/* Removing one may move another into its slot. */
		while (slot->used && target_name_is_gone(n, name = (void *)(uintptr_t)slot->value)) {
			map_remove(&n->known, slot->key);
			n->named -= name->text != NULL;
			target_name_free(name);
		}
	}
	n->round++;
}

void target_names_want_all(struct target_names *n)
{
	n->all_wanted = true;
}

bool target_names_settled(const struct target_names *n)
{
	return !n->open && !target_names_has_question(n);
}

bool target_names_has_question(const struct target_names *n)
{
	return !n->open && (n->all_wanted || n->first);
}

/* Moves queued ids into the question. */
static void target_names_dequeue(struct target_names *n)
{
	size_t at = 0, most = n->most ? n->most : ASKED_MAX;
	struct target_name *name;

	while ((name = n->first) && at < most * HOST_CONTAINER_ID) {
		memcpy(n->asked + at, name->id, HOST_CONTAINER_ID);
		at += HOST_CONTAINER_ID;
		n->first = name->next;
		name->queued = false;
	}
	n->asked[at] = '\0';
}

bool target_names_question(struct target_names *n, char path[HOST_PATH_MAX])
{
	if (!target_names_has_question(n))
		return false;
	n->open = true;
	n->asked[0] = '\0';
	if (!n->all_wanted)
		target_names_dequeue(n);
	n->all_wanted = false;
	strcpy(path, n->asked);
	return true;
}

static int target_names_set(struct target_names *n, const char *id, const char *text)
{
	struct target_name *name = target_names_get(n, id);
	char *copy;

	if (!name && n->named >= NAMED_MAX)
		return 0; /* nobody has looked it up */
	copy = strdup(text);
	if (copy && !name)
		name = target_names_add(n, id);
	if (!copy || !name) {
		free(copy);
		return -ENOMEM;
	}
	n->named += !name->text;
	free(name->text);
	name->text = copy;
	name->resolved = true;
	name->again_ns = UINT64_MAX;
	return 0;
}

static int target_names_take(struct target_names *n, const char *data, size_t len)
{
	const char *text, *end;
	int err = 0;

	while (len && !err) {
		text = data + HOST_CONTAINER_ID;
		end = len > HOST_CONTAINER_ID ? memchr(text, '\0', len - HOST_CONTAINER_ID) : NULL;
		if (!end || end == text)
			return -EBADMSG;
		err = target_names_set(n, data, text);
		len -= (size_t)(end + 1 - data);
		data = end + 1;
	}
	return err;
}

/* Containers of the question that the answer does not name; those that are gone were dropped meanwhile. */
static void target_names_settle_asked(struct target_names *n, int err, uint64_t now_ns)
{
	for (const char *id = n->asked; *id; id += HOST_CONTAINER_ID) {
		struct target_name *name = target_names_get(n, id);

		if (!name || name->text || name->queued)
			continue;
		name->resolved |= !err;
		name->again_ns = now_ns + (err ? RETRY_NS : NONE_HOLD_NS);
	}
	n->asked[0] = '\0';
}

void target_names_answer(struct target_names *n, int err, const char *data, size_t len, uint64_t now_ns)
{
	if (!n->open)
		return;
	n->open = false;
	if (!err)
		err = target_names_take(n, data, len);
	target_names_settle_asked(n, err, now_ns);
	n->most = err ? 1 : n->most < ASKED_MAX / 2 ? n->most * 2 : 0;
}
