// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/profile.h"

_Static_assert(RUNTIME_LABELS <= PROFILE_LABELS_MAX, "all labels of a sample are sent");

struct labels_key {
	uint64_t key; /* hashes: of two texts with one hash the second is taken for the first */
	struct map values;
	bool given_up; /* there were too many */
};

void labels_done(struct labels *l)
{
	for (uint32_t i = 0; i < l->nr; i++)
		map_done(&l->key[i].values);
	free(l->key);
	*l = (struct labels){0};
}

static uint64_t label_hash(const char *text)
{
	return hash_bytes(text, strlen(text), hash_seed);
}

/* NULL: too many, or no memory. */
static struct labels_key *labels_key_get(struct labels *l, uint64_t key)
{
	for (uint32_t i = 0; i < l->nr; i++)
		if (l->key[i].key == key)
			return &l->key[i];
	if (!l->key)
		l->key = calloc(LABEL_KEYS, sizeof(*l->key));
	if (!l->key || l->nr == LABEL_KEYS)
		return NULL;
	l->key[l->nr].key = key;
	return &l->key[l->nr++];
}

static bool labels_is_taken(struct labels *l, const struct runtime_label *label)
{
	struct labels_key *k = utf8_is_clean(label->key, strlen(label->key)) ? labels_key_get(l, label_hash(label->key)) : NULL;
	uint64_t value = label_hash(label->value);
	uint32_t max = label->is_name ? LABEL_NAMES : LABEL_VALUES;

	if (!k || k->given_up)
		return false;
	if (map_find(&k->values, value))
		return true;
	k->given_up = k->values.count >= max || map_put(&k->values, value, 1) < 0;
	if (k->given_up)
		map_done(&k->values);
	return !k->given_up;
}

static int labels_compare(const void *a, const void *b)
{
	const struct runtime_label *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* Sorted, and each key once: of equal ones the first, as a map would have. */
static uint32_t labels_choose(struct labels *l, const struct runtime_context *c, const struct runtime_label *to[RUNTIME_LABELS],
			      uint64_t *left)
{
	uint32_t n = 0, unique = 0;

	for (uint32_t i = 0; i < MIN(c->nr_labels, (uint32_t)RUNTIME_LABELS); i++)
		if (labels_is_taken(l, &c->label[i]))
			to[n++] = &c->label[i];
		else
			++*left;
	qsort(to, n, sizeof(to[0]), labels_compare);
	for (uint32_t i = 0; i < n; i++)
		if (!unique || strcmp(to[unique - 1]->key, to[i]->key) != 0)
			to[unique++] = to[i];
	return unique;
}

struct str *labels_take(struct labels *l, const struct runtime_context *c, uint64_t *left)
{
	const struct runtime_label *chosen[RUNTIME_LABELS];
	char text[RUNTIME_LABELS * sizeof(struct runtime_label)];
	size_t at = 0;
	uint32_t n;

	*left += c->labels_left;
	n = labels_choose(l, c, chosen, left);
	for (uint32_t i = 0; i < n; i++) {
		at = (size_t)(stpcpy(text + at, chosen[i]->key) - text) + 1;
		at += utf8_clean(text + at, RUNTIME_LABEL_VALUE - 1, chosen[i]->value, strlen(chosen[i]->value));
		text[at++] = '\0';
	}
	return at ? str_get(text, at) : NULL;
}
