// SPDX-License-Identifier: Apache-2.0
#include "process/workload.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define SERVICE_NAME "service.name"

/* One pool for the process: workloads are compared by pointer. It holds no references, and one thread uses it. */
static struct map pool;

static bool attribute_is_service(const struct str *key)
{
	return !strcmp(key->s, SERVICE_NAME);
}

static int attribute_compare(const void *a, const void *b)
{
	const struct attribute *x = a, *y = b;

	if (x->key == y->key)
		return 0;
	if (attribute_is_service(x->key) || attribute_is_service(y->key))
		return attribute_is_service(x->key) ? -1 : 1;
	return strcmp(x->key->s, y->key->s);
}

/* Keys are interned, so equal ones are the same object. */
static bool attributes_have_key(const struct workload *w, const struct str *key)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->attributes[i].key == key)
			return true;
	return false;
}

static void workload_collect(struct workload *w, const struct attribute *attrs, size_t n)
{
	for (size_t i = 0; i < n && w->count < WORKLOAD_ATTRIBUTES_MAX; i++)
		if (!attributes_have_key(w, attrs[i].key))
			w->attributes[w->count++] = attrs[i];
	qsort(w->attributes, w->count, sizeof(*w->attributes), attribute_compare);
}

static uint64_t attributes_hash(const struct workload *w)
{
	uint64_t hash = w->count;

	for (uint32_t i = 0; i < w->count; i++)
		hash = hash_u64(hash ^ w->attributes[i].key->hash) + w->attributes[i].value->hash;
	return hash;
}

static bool attributes_equal(const struct workload *a, const struct workload *b)
{
	/* A pair of pointers has no padding, and equal strings are one object. */
	return a->count == b->count && !memcmp(a->attributes, b->attributes, a->count * sizeof(*a->attributes));
}

static struct workload *workload_pool_find(const struct workload *key)
{
	struct workload *w = map_find_ptr(&pool, key->hash);

	while (w && !attributes_equal(w, key))
		w = w->next;
	return w;
}

static int workload_pool_add(const struct workload *key, struct workload **ret)
{
	struct workload *w = malloc(sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = *key;
	w->refs = 1;
	w->next = map_find_ptr(&pool, w->hash);
	if (map_put_ptr(&pool, w->hash, w) < 0) {
		free(w);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->count; i++) {
		str_ref(w->attributes[i].key);
		str_ref(w->attributes[i].value);
	}
	*ret = w;
	return 0;
}

static void workload_pool_remove(struct workload *w)
{
	struct workload *at = map_find_ptr(&pool, w->hash);

	if (at != w) {
		while (at->next != w)
			at = at->next;
		at->next = w->next;
	} else if (w->next) {
		*map_find(&pool, w->hash) = (uint64_t)(uintptr_t)w->next;
	} else {
		map_remove(&pool, w->hash);
	}
	if (!pool.count)
		map_done(&pool);
}

int workload_get(const struct attribute *attrs, size_t n, struct workload **ret)
{
	struct workload key = {0}, *w;

	workload_collect(&key, attrs, n);
	if (!key.count || !attribute_is_service(key.attributes[0].key))
		return -EINVAL;
	key.service = key.attributes[0].value;
	key.hash = attributes_hash(&key);
	w = workload_pool_find(&key);
	if (!w)
		return workload_pool_add(&key, ret);
	*ret = workload_ref(w);
	return 0;
}

struct workload *workload_ref(struct workload *w)
{
	if (w)
		w->refs++;
	return w;
}

struct workload *workload_put(struct workload *w)
{
	if (!w || --w->refs)
		return NULL;
	workload_pool_remove(w);
	for (uint32_t i = 0; i < w->count; i++) {
		str_put(w->attributes[i].key);
		str_put(w->attributes[i].value);
	}
	free(w);
	return NULL;
}

const struct str *workload_attribute(const struct workload *w, const char *key)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (!strcmp(w->attributes[i].key->s, key))
			return w->attributes[i].value;
	return NULL;
}
