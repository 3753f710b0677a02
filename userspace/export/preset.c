// SPDX-License-Identifier: Apache-2.0
#include "export/preset.h"

#include <string.h>

#include "base/cleanup.h"

/*
 * Ids that are new with each container, pod or process make series that end with it, and ids of the host or its system
 * say what host.name does. Names, which people select by, stay.
 */
static const char *const not_for_pyroscope[] = {
	"container.id", "host.id",	   "k8s.container.restart_count", "k8s.pod.ip",	   "k8s.pod.start_time",
	"k8s.pod.uid",	"os.type",	   "otprof.cgroup",		  "process.command", "process.command_args",
	"process.command_line", "process.creation.time", "process.executable.path", "process.parent_pid",
	"process.pid", "service.instance.id",
};

static const char *const for_minimal[] = {"service.name", "service.namespace"};

static bool preset_lists(const char *const *keys, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

bool preset_keeps_resource(enum export_preset preset, const char *key)
{
	if (preset == EXPORT_PRESET_PYROSCOPE)
		return !preset_lists(not_for_pyroscope, ARRAY_SIZE(not_for_pyroscope), key);
	return preset == EXPORT_PRESET_OTLP || preset_lists(for_minimal, ARRAY_SIZE(for_minimal), key);
}

/* Programs of one unit or container are as many as are installed; pids, threads and CPUs grow with load and time. */
bool preset_keeps_sample(enum export_preset preset, const char *key)
{
	if (preset == EXPORT_PRESET_PYROSCOPE)
		return !strcmp(key, "process.executable.name");
	return preset == EXPORT_PRESET_OTLP;
}

bool preset_drops_addresses(enum export_preset preset)
{
	return preset != EXPORT_PRESET_OTLP;
}

static bool preset_keep_resource(void *ctx, const char *key)
{
	return preset_keeps_resource(*(const enum export_preset *)ctx, key);
}

static bool preset_keep_sample(void *ctx, const char *key)
{
	return preset_keeps_sample(*(const enum export_preset *)ctx, key);
}

int preset_apply(enum export_preset preset, struct recording *r)
{
	const struct recording_keep keep = {
		.resource = preset_keep_resource, .sample = preset_keep_sample, .ctx = &preset};

	return preset == EXPORT_PRESET_OTLP ? 0 : recording_narrow(r, &keep);
}
