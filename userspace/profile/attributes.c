// SPDX-License-Identifier: Apache-2.0
#include "profile/attributes.h"

#include <string.h>

#include "base/cleanup.h"

enum { SAMPLE_LABELS = -1 }; /* beside enum dict_value */

struct sample_value {
	int type;
	bool present;
	uint64_t value;
};

static struct sample_value sample_value_of_string(struct str *s)
{
	return (struct sample_value){.type = DICT_STRING, .present = s, .value = (uint64_t)(uintptr_t)s};
}

static struct sample_value sample_value_of_int(uint32_t v)
{
	return (struct sample_value){.type = DICT_INT, .present = true, .value = v};
}

static struct sample_value sample_value_of_labels(struct str *s)
{
	return (struct sample_value){.type = SAMPLE_LABELS, .present = s, .value = (uint64_t)(uintptr_t)s};
}

#define SAMPLE_VALUE_INT    sample_value_of_int
#define SAMPLE_VALUE_STRING sample_value_of_string
#define SAMPLE_VALUE_LABELS sample_value_of_labels

static struct sample_value sample_value_get(const struct sample_key *key, enum sample_attribute a)
{
	switch (a) {
#define X(NAME, name, type, field) case SAMPLE_ATTRIBUTE_##NAME: return SAMPLE_VALUE_##type(key->field);
	SAMPLE_ATTRIBUTES(X)
#undef X
	case SAMPLE_ATTRIBUTE_NR:
		break;
	}
	return (struct sample_value){0};
}

static bool sample_value_is_workloads(const struct sample_value *v, const struct workload *w, const char *key)
{
	for (uint32_t i = 0; v->type == DICT_STRING && i < w->count; i++)
		if (strcmp(str_c(w->attributes[i].key), key) == 0)
			return w->attributes[i].value == (struct str *)(uintptr_t)v->value;
	return false;
}

static int sample_labels_add(struct dictionary *d, const struct str *text, struct attribute_list *ret)
{
	const struct named_labels *l = names_labels(d->names, text);
	int r = 0;

	for (uint32_t i = 0; l && r == 0 && i < l->count; i++) {
		r = dictionary_label(d, l->of[i].key, l->of[i].value, &ret->of[ret->count]);
		ret->count += r == 0;
	}
	return r;
}

static int sample_value_add(struct dictionary *d, const char *name, const struct sample_value *v, struct attribute_list *ret)
{
	int r;

	if (v->type == SAMPLE_LABELS)
		return sample_labels_add(d, (struct str *)(uintptr_t)v->value, ret);
	r = dictionary_attribute(d, name, (enum dict_value)v->type, v->value, &ret->of[ret->count]);
	ret->count += r == 0;
	return r;
}

int sample_attributes(struct dictionary *d, const struct sample_key *key, const struct workload *w, uint32_t mask,
		      struct attribute_list *ret)
{
	static const char *const names[] = {
#define X(NAME, name, type, field) [SAMPLE_ATTRIBUTE_##NAME] = name,
		SAMPLE_ATTRIBUTES(X)
#undef X
	};

	*ret = (struct attribute_list){0};
	for (unsigned a = 0; a < SAMPLE_ATTRIBUTE_NR; a++) {
		struct sample_value v = sample_value_get(key, a);
		int r;

		if (!(mask & 1u << a) || !v.present || sample_value_is_workloads(&v, w, names[a]))
			continue;
		r = sample_value_add(d, names[a], &v, ret);
		if (r < 0)
			return r;
	}
	return 0;
}
