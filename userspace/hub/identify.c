// SPDX-License-Identifier: Apache-2.0
#include "hub/identify.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define CONTAINER_ID_SHOWN 12
#define FNV_BASIS 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

const char *workload_kind_text(enum workload_kind kind)
{
	static const char *const texts[] = {
#define X(NAME, text) [WORKLOAD_##NAME] = text,
		WORKLOAD_KINDS(X)
#undef X
	};

	return texts[kind];
}

/* The attributes that are looked for, in one pass over the set: it is as long as its writer wanted. */
#define IDENTIFY_KEYS(X)                                \
	X(NAMESPACE, "k8s.namespace.name")              \
	X(ODIGOS_KIND, "odigos.workload.kind")          \
	X(ODIGOS_NAME, "odigos.workload.name")          \
	X(DEPLOYMENT, "k8s.deployment.name")            \
	X(STATEFULSET, "k8s.statefulset.name")          \
	X(DAEMONSET, "k8s.daemonset.name")              \
	X(CRONJOB, "k8s.cronjob.name")                  \
	X(JOB, "k8s.job.name")                          \
	X(REPLICASET, "k8s.replicaset.name")            \
	X(POD, "k8s.pod.name")                          \
	X(CONTAINER_NAME, "container.name")             \
	X(CONTAINER_ID, "container.id")                 \
	X(UNIT, "otprof.systemd.unit")                  \
	X(EXECUTABLE, "process.executable.name")        \
	X(SERVICE, "service.name")                      \
	X(HOST, "host.name")

enum identify_key {
#define X(NAME, key) KEY_##NAME,
	IDENTIFY_KEYS(X)
#undef X
	KEY_NR
};

static const char *const identify_keys[] = {
#define X(NAME, key) [KEY_##NAME] = key,
	IDENTIFY_KEYS(X)
#undef X
};

static void identify_read(const struct recording *r, uint32_t set, const char *texts[KEY_NR])
{
	size_t n, i;
	const uint32_t *numbers = recording_set(r, set, &n);

	for (i = 0; i < n; i++) {
		const struct rec_attribute *a = intern_key(&r->attributes, numbers[i]);
		const char *key = recording_str(r, a->key);

		for (int k = 0; k < KEY_NR; k++)
			if (!*texts[k] && strcmp(key, identify_keys[k]) == 0)
				texts[k] = recording_str(r, a->text);
	}
}

/* Shortened to the name's room, at a whole character. */
static void identify_set_name(struct workload_identity *w, const char *prefix, const char *text, size_t max)
{
	size_t n = strlen(prefix), len = strlen(text);

	n = utf8_clean(w->name, WORKLOAD_NAME - 1, prefix, n);
	n += utf8_clean(w->name + n, WORKLOAD_NAME - 1 - n, text, MIN(len, max));
	w->name[n] = '\0';
}

static bool identify_kubernetes(struct workload_identity *w, const char *const texts[KEY_NR])
{
	static const struct {
		enum identify_key key;
		const char *prefix;
	} owners[] = {
		{KEY_DEPLOYMENT, "deployment/"}, {KEY_STATEFULSET, "statefulset/"}, {KEY_DAEMONSET, "daemonset/"},
		{KEY_CRONJOB, "cronjob/"},	 {KEY_JOB, "job/"},		    {KEY_REPLICASET, "replicaset/"},
		{KEY_POD, "pod/"},
	};
	char prefix[64];

	if (*texts[KEY_ODIGOS_NAME]) {
		snprintf(prefix, sizeof(prefix), "%.60s/",
			 *texts[KEY_ODIGOS_KIND] ? texts[KEY_ODIGOS_KIND] : "workload");
		identify_set_name(w, prefix, texts[KEY_ODIGOS_NAME], WORKLOAD_NAME);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++)
		if (*texts[owners[i].key]) {
			identify_set_name(w, owners[i].prefix, texts[owners[i].key], WORKLOAD_NAME);
			return true;
		}
	return false;
}

/* Units that hold one service; a session holds whatever its user runs, and each program of it is a workload. */
static bool identify_unit(struct workload_identity *w, const char *unit)
{
	size_t len = strlen(unit);

	if (len < 8 || strcmp(unit + len - 8, ".service") != 0 || strncmp(unit, "user@", 5) == 0)
		return false;
	identify_set_name(w, "", unit, WORKLOAD_NAME);
	return true;
}

static bool identify_kernel(struct workload_identity *w, const char *executable)
{
	if (strcmp(executable, "[kernel]") != 0 && strcmp(executable, "[interrupts]") != 0)
		return false;
	identify_set_name(w, "", *w->service ? w->service : executable, WORKLOAD_NAME);
	return true;
}

static enum workload_kind identify_kind(struct workload_identity *w, const char *const texts[KEY_NR])
{
	if (identify_kubernetes(w, texts))
		return WORKLOAD_KUBERNETES;
	if (*texts[KEY_CONTAINER_NAME] || *texts[KEY_CONTAINER_ID]) {
		bool named = *texts[KEY_CONTAINER_NAME];

		identify_set_name(w, "", texts[named ? KEY_CONTAINER_NAME : KEY_CONTAINER_ID],
				  named ? WORKLOAD_NAME : CONTAINER_ID_SHOWN);
		return WORKLOAD_CONTAINER;
	}
	if (identify_unit(w, texts[KEY_UNIT]))
		return WORKLOAD_UNIT;
	if (identify_kernel(w, w->executable))
		return WORKLOAD_KERNEL;
	identify_set_name(w, "", *w->service ? w->service : *w->executable ? w->executable : "unknown", WORKLOAD_NAME);
	return *w->executable ? WORKLOAD_EXECUTABLE : WORKLOAD_SERVICE;
}

/* With its NUL, so that texts do not run into each other. */
static uint64_t identify_hash(uint64_t h, const char *s)
{
	do {
		h = (h ^ (uint8_t)*s) * FNV_PRIME;
	} while (*s++);
	return h;
}

/* A workload of Kubernetes is one on all its hosts. Two containers may have one name, but not in one namespace. */
static uint64_t identify_id(const struct workload_identity *w, const char *container_id)
{
	uint64_t h = identify_hash(FNV_BASIS, workload_kind_text(w->kind));

	h = identify_hash(h, w->namespace);
	h = identify_hash(h, w->name);
	if (w->kind != WORKLOAD_KUBERNETES)
		h = identify_hash(h, w->host);
	if (w->kind == WORKLOAD_CONTAINER && strncmp(w->name, container_id, CONTAINER_ID_SHOWN) == 0)
		h = identify_hash(h, container_id);
	if (w->kind == WORKLOAD_EXECUTABLE)
		h = identify_hash(h, w->executable);
	return h ? h : 1;
}

void identify(const struct recording *r, uint32_t resource, uint32_t set, struct workload_identity *ret)
{
	const struct rec_resource *of = intern_key(&r->resources, resource);
	const char *texts[KEY_NR];
	struct workload_identity w = {0};

	for (int i = 0; i < KEY_NR; i++)
		texts[i] = "";
	identify_read(r, of->attributes, texts);
	identify_read(r, set, texts);
	w.namespace = texts[KEY_NAMESPACE];
	w.service = texts[KEY_SERVICE];
	w.executable = texts[KEY_EXECUTABLE];
	w.kind = identify_kind(&w, texts);
	w.host = w.kind == WORKLOAD_KUBERNETES ? "" : texts[KEY_HOST];
	w.id = identify_id(&w, texts[KEY_CONTAINER_ID]);
	*ret = w;
}

bool identify_by_resource(const struct workload_identity *w)
{
	return w->kind != WORKLOAD_SERVICE || *w->service;
}
