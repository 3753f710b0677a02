// SPDX-License-Identifier: Apache-2.0
/*
 * The name that people gave a container, from its id. Runtimes write it below
 * directories that only root may enter: Docker into config.v2.json, Podman
 * into its list of containers, containerd's CRI into the labels of the bundle.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/monitor/targets.h"

#define FILE_MAX  (4u << 20)
#define NAMES_MAX 4096

static json_t *load(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid || st.st_size > FILE_MAX)
		return NULL;
	return json_loadfd(fd, 0, NULL);
}

static char *copy_name(const json_t *value)
{
	const char *s = json_string_value(value);

	return s ? strdup(s + strspn(s, "/")) : NULL;
}

static char *of_docker(const char *id)
{
	char path[160], *name;
	json_t *root;

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%.64s/config.v2.json", id);
	root = load(path);
	name = copy_name(json_object_get(root, "Name"));
	json_decref(root);
	return name;
}

static char *of_podman(const char *id)
{
	json_t *root = load("/var/lib/containers/storage/overlay-containers/containers.json"), *each;
	char *name = NULL;
	size_t i;

	json_array_foreach(root, i, each) {
		const char *own = json_string_value(json_object_get(each, "id"));

		if (!name && own && !strcmp(own, id))
			name = copy_name(json_array_get(json_object_get(each, "names"), 0));
	}
	json_decref(root);
	return name;
}

static char *of_cri(const char *id)
{
	static const char label[] = "io.kubernetes.cri.container-name";
	char path[160], *name;
	json_t *root;

	snprintf(path, sizeof(path), "/run/containerd/io.containerd.runtime.v2.task/k8s.io/%.64s/config.json", id);
	root = load(path);
	name = copy_name(json_object_get(json_object_get(root, "annotations"), label));
	json_decref(root);
	return name;
}

/* Known or not, it is asked for once: names of containers do not change while they run, or hardly ever. */
const char *container_name(struct map *names, const char *id)
{
	uint64_t key = hash_bytes(id, strlen(id), 0);
	const uint64_t *have = map_find(names, key);
	char *name;

	if (have)
		return (const char *)(uintptr_t)*have;
	if (names->count >= NAMES_MAX)
		container_names_done(names);
	name = of_docker(id);
	if (!name)
		name = of_podman(id);
	if (!name)
		name = of_cri(id);
	if (!name)
		name = strdup("");
	if (!name || map_put_ptr(names, key, name) < 0) {
		free(name);
		return "";
	}
	return name;
}

void container_names_done(struct map *names)
{
	map_for_each(names, slot)
		free((void *)(uintptr_t)slot->value);
	map_done(names);
}
