// SPDX-License-Identifier: Apache-2.0
#include "profile/attributes.h"

#include <string.h>

#include "base/cleanup.h"

struct sample_value {
	enum dict_value type;
	bool present;
	uint64_t value;
};

static struct sample_value of_string(struct str *s)
{
	return (struct sample_value){.type = DICT_STRING, .present = s, .value = (uint64_t)(uintptr_t)s};
}

static struct sample_value of_int(uint32_t v)
{
	return (struct sample_value){.type = DICT_INT, .present = true, .value = v};
}

/* One line for each of SAMPLE_ATTRIBUTES. */
static struct sample_value value_of(enum sample_attribute a, const struct sample_key *key)
{
	switch (a) {
	case SAMPLE_ATTRIBUTE_PID:
		return of_int(key->pid);
	case SAMPLE_ATTRIBUTE_EXECUTABLE:
		return of_string(key->exe);
	case SAMPLE_ATTRIBUTE_THREAD_NAME:
		return of_string(key->comm);
	case SAMPLE_ATTRIBUTE_THREAD_ID:
		return of_int(key->tid);
	case SAMPLE_ATTRIBUTE_CPU:
		return of_int(key->cpu);
	case SAMPLE_ATTRIBUTE_NR:
		break;
	}
	return (struct sample_value){0};
}

static bool says_workload(const struct workload *w, const char *key, const struct sample_value *v)
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
#define X(NAME, name, type) [SAMPLE_ATTRIBUTE_##NAME] = name,
		SAMPLE_ATTRIBUTES(X)
#undef X
	};

	*ret = (struct attribute_list){0};
	for (unsigned a = 0; a < SAMPLE_ATTRIBUTE_NR; a++) {
		struct sample_value v = value_of(a, key);
		int r;

		if (!(mask & 1u << a) || !v.present || says_workload(w, names[a], &v))
			continue;
		r = dictionary_attribute(d, names[a], v.type, v.value, &ret->of[ret->count]);
		if (r < 0)
			return r;
		ret->count++;
	}
	return 0;
}
