// SPDX-License-Identifier: Apache-2.0
#include "profile/attributes.h"

#include <string.h>

#include "base/cleanup.h"

struct sample_value {
	enum dict_value type;
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

#define SAMPLE_VALUE_INT    sample_value_of_int
#define SAMPLE_VALUE_STRING sample_value_of_string

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
		r = dictionary_attribute(d, names[a], v.type, v.value, &ret->of[ret->count]);
		if (r < 0)
			return r;
		ret->count++;
	}
	return 0;
}
