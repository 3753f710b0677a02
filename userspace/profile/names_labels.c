// SPDX-License-Identifier: Apache-2.0
/* The labels of an interval's samples, as attributes: split once for each text. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/names.h"

static const char names_label_prefix[] = "process.context.label.";

static void named_labels_free(struct named_labels *l)
{
	for (uint32_t i = 0; l && i < l->count; i++) {
		str_put(l->of[i].key);
		str_put(l->of[i].value);
	}
	free(l);
}

void names_free_labels(struct names *n)
{
	map_for_each(&n->of_labels, slot)
		named_labels_free((void *)(uintptr_t)slot->value);
	map_done(&n->of_labels);
}

static struct str *names_label_key(const char *key)
{
	struct str *s;
	char *text;

	if (asprintf(&text, "%s%s", names_label_prefix, key) < 0)
		return NULL;
	s = str_get_c(text);
	free(text);
	return s;
}

/* false: no memory. */
static bool named_labels_split(struct named_labels *l, const struct str *text)
{
	const char *at = text->s, *end = text->s + text->len;

	while (at < end && l->count < PROFILE_LABELS_MAX) {
		const char *value = at + strlen(at) + 1;

		if (value >= end)
			break;
		l->of[l->count].key = names_label_key(at);
		l->of[l->count].value = str_get_c(value);
		l->count++;
		if (!l->of[l->count - 1].key || !l->of[l->count - 1].value)
			return false;
		at = value + strlen(value) + 1;
	}
	return true;
}

static int names_add_labels(struct names *n, const struct str *text)
{
	struct named_labels *l;

	if (!text || names_labels(n, text))
		return 0;
	l = calloc(1, sizeof(*l));
	if (l && named_labels_split(l, text) && map_put_ptr(&n->of_labels, (uint64_t)(uintptr_t)text, l) == 0)
		return 0;
	named_labels_free(l);
	return -ENOMEM;
}

int names_make_labels(struct names *n, const struct profile_builder *b)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < b->samples.count; i++)
		r = names_add_labels(n, builder_sample(b, i)->labels);
	return r;
}

const struct named_labels *names_labels(const struct names *n, const struct str *text)
{
	return map_find_ptr(&n->of_labels, (uint64_t)(uintptr_t)text);
}
