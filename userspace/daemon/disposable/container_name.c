// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/container_name.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "process/host.h"

#define FILE_MAX     (4u << 20)
#define NAMES_MAX    4096
#define NONE_HOLD_NS (10 * NSEC_PER_SEC)

#define DOCKER_DIR  "/var/lib/docker/containers"
#define DOCKER_FILE "config.v2.json"
#define CRI_DIR	    "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
#define CRI_FILE    "config.json"
#define CRI_LABEL   "io.kubernetes.cri.container-name"
#define PODMAN_FILE "/var/lib/containers/storage/overlay-containers/containers.json"

struct container_name {
	uint64_t until_ns; /* 0: never */
	char id[HOST_CONTAINER_ID];
	char text[HOST_CONTAINER_NAME_MAX];
};

void container_names_init(struct container_names *n, const char *root, uid_t owner)
{
	*n = (struct container_names){.root = root, .owner = owner};
}

static void container_names_drop(struct map *names)
{
	map_for_each(names, slot)
		free((void *)(uintptr_t)slot->value);
	map_done(names);
}

void container_names_done(struct container_names *n)
{
	container_names_drop(&n->known);
	container_names_drop(&n->listed);
	n->list = (struct stat){0};
}

static bool container_id_is_sound(const char *id)
{
	return strspn(id, "0123456789abcdef") == HOST_CONTAINER_ID && !id[HOST_CONTAINER_ID];
}

/* Docker's names begin with a slash. */
static const char *container_names_put(struct map *names, const char *id, const char *text)
{
	uint64_t key = hash_bytes(id, HOST_CONTAINER_ID, 0);
	struct container_name *name = map_find_ptr(names, key);

	if (!name) {
		name = malloc(sizeof(*name));
		if (!name || map_put_ptr(names, key, name) < 0) {
			free(name);
			return "";
		}
	}
	memcpy(name->id, id, sizeof(name->id));
	text += strspn(text, "/");
	name->text[utf8_clean(name->text, sizeof(name->text) - 1, text, strlen(text))] = '\0';
	name->until_ns = name->text[0] ? 0 : clock_now_ns() + NONE_HOLD_NS;
	return name->text;
}

static const char *container_names_keep(struct container_names *n, const char *id, const char *text)
{
	if (n->known.count >= NAMES_MAX)
		container_names_drop(&n->known);
	return container_names_put(&n->known, id, text);
}

static const char *container_names_cached(const struct container_names *n, const char *id)
{
	const struct container_name *name = map_find_ptr(&n->known, hash_bytes(id, HOST_CONTAINER_ID, 0));

	return name && (!name->until_ns || clock_now_ns() < name->until_ns) ? name->text : NULL;
}

/* A regular file of the owner; -1: there is none. */
static int container_open(const struct container_names *n, const char *path, struct stat *ret_st)
{
	_cleanup_(closep) int fd = -1;
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", n->root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, ret_st) < 0 || !S_ISREG(ret_st->st_mode) || ret_st->st_uid != n->owner)
		return -1;
	return steal_fd(&fd);
}

static json_t *container_parse(int fd)
{
	_cleanup_(buf_done) struct buf text = {0};

	return file_copy(fd, FILE_MAX, &text) ? NULL : json_loadb((const char *)text.data, text.len, 0, NULL);
}

static json_t *container_json(const struct container_names *n, const char *dir, const char *id, const char *file)
{
	_cleanup_(closep) int fd = -1;
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s/%s", dir, id, file);
	fd = container_open(n, path, &st);
	return fd < 0 ? NULL : container_parse(fd);
}

static bool container_names_docker(struct container_names *n, const char *id)
{
	json_t *root = container_json(n, DOCKER_DIR, id, DOCKER_FILE);
	const char *name = json_string_value(json_object_get(root, "Name"));

	if (name)
		container_names_keep(n, id, name);
	json_decref(root);
	return name;
}

static bool container_names_cri(struct container_names *n, const char *id)
{
	json_t *root = container_json(n, CRI_DIR, id, CRI_FILE);
	const char *name = json_string_value(json_object_get(json_object_get(root, "annotations"), CRI_LABEL));

	if (name)
		container_names_keep(n, id, name);
	json_decref(root);
	return name;
}

static void container_names_add(const char *id, const char *name, struct buf *to)
{
	if (!name[0])
		return;
	buf_add(to, id, HOST_CONTAINER_ID);
	buf_add(to, name, strlen(name) + 1);
}

static bool container_list_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void container_list_take(struct container_names *n, json_t *root)
{
	json_t *each;
	size_t i;

	container_names_drop(&n->listed);
	json_array_foreach(root, i, each) {
		const char *id = json_string_value(json_object_get(each, "id"));
		const char *name = json_string_value(json_array_get(json_object_get(each, "names"), 0));

		if (id && name && container_id_is_sound(id) && n->listed.count < NAMES_MAX)
			container_names_put(&n->listed, id, name);
	}
}

/* One list holds all of Podman's containers: parsing it once resolves each, until Podman replaces it. */
static void container_list_read(struct container_names *n)
{
	_cleanup_(closep) int fd = -1;
	struct stat st = {0};
	json_t *root;

	fd = container_open(n, PODMAN_FILE, &st);
	if (fd < 0) {
		container_names_drop(&n->listed);
		n->list = (struct stat){0};
	} else if (!container_list_is_same(&st, &n->list)) {
		n->list = st;
		n->parsed++;
		root = container_parse(fd);
		container_list_take(n, root);
		json_decref(root);
	}
}

static void container_names_podman(struct container_names *n, const char *id)
{
	const struct container_name *name;

	container_list_read(n);
	name = map_find_ptr(&n->listed, hash_bytes(id, HOST_CONTAINER_ID, 0));
	if (name)
		container_names_keep(n, id, name->text);
}

const char *container_names_find(struct container_names *n, const char *id)
{
	const char *name = container_names_cached(n, id);

	if (name)
		return name;
	if (!container_names_docker(n, id) && !container_names_cri(n, id))
		container_names_podman(n, id);
	name = container_names_cached(n, id);
	return name ? name : container_names_keep(n, id, "");
}

void container_names_one(struct container_names *n, const char *id, struct buf *to)
{
	if (container_id_is_sound(id))
		container_names_add(id, container_names_find(n, id), to);
}

static void container_names_below(struct container_names *n, const char *below, struct buf *to)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *e;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", n->root, below);
	dir = opendir(path);
	for (int i = 0; dir && i < NAMES_MAX && (e = readdir(dir)); i++)
		container_names_one(n, e->d_name, to);
}

void container_names_all(struct container_names *n, struct buf *to)
{
	container_names_below(n, DOCKER_DIR, to);
	container_names_below(n, CRI_DIR, to);
	container_list_read(n);
	map_for_each(&n->listed, slot) {
		const struct container_name *name = (void *)(uintptr_t)slot->value;

		container_names_add(name->id, name->text, to);
	}
}
