/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload: what a backend calls a resource. Processes with equal
 * attributes share one object, so comparing pointers compares workloads.
 * Called by the engine, one thread. Reference counted.
 */
#ifndef OTP_PROCESS_WORKLOAD_H
#define OTP_PROCESS_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/strpool.h"

#define WORKLOAD_ATTRIBUTES_MAX 24 /* receivers take 25 besides service.name */

struct attribute {
	struct str *key;
	struct str *value;
};

struct workload {
	uint32_t refs;
	uint32_t count;
	uint64_t hash;
	struct str *service; /* value of service.name, borrowed from attributes */
	struct attribute attributes[WORKLOAD_ATTRIBUTES_MAX]; /* sorted by key; service.name first */
	struct workload *next; /* the pool's own */
};

/*
 * The workload with these attributes, made if there is none: service.name is
 * put first, the rest sorted; of equal keys the first one given stays, what
 * exceeds WORKLOAD_ATTRIBUTES_MAX is left out. attrs is borrowed. Without
 * service.name it is -EINVAL; -ENOMEM.
 */
int workload_get(const struct attribute *attrs, size_t n, struct workload **ret);
struct workload *workload_ref(struct workload *w);
struct workload *workload_put(struct workload *w); /* NULL */
const struct str *workload_attribute(const struct workload *w, const char *key); /* borrowed; NULL if absent */

#endif
