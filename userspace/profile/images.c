// SPDX-License-Identifier: Apache-2.0
#include "profile/images.h"

#include "base/array.h"
#include "base/cleanup.h"

#define IMAGES_MAX 65536

void images_reset(struct images *m)
{
	map_for_each(&m->by_file, slot)
		mapped_file_put((struct mapped_file *)(uintptr_t)slot->key);
	map_done(&m->by_file);
	map_done(&m->by_identity);
	for (uint32_t i = IMAGE_FILE; i < m->count; i++) {
		binary_put(m->list[i].binary);
		str_put(m->list[i].path);
	}
	free(m->list);
	*m = (struct images){0};
}

static int images_reserve(struct images *m)
{
	m->count = MAX(m->count, (uint32_t)IMAGE_FILE);
	if (m->count >= IMAGES_MAX)
		return -ENOSPC;
	return array_reserve(&m->list, m->count, &m->cap, sizeof(*m->list));
}

/*
 * Files with one binary are one image. Without a binary the path is all there
 * is; strings are shared, so its address is its identity.
 */
static int images_add_identity(struct images *m, struct binary *binary, struct str *path, uint32_t *ret)
{
	uint64_t key = binary ? (uint64_t)(uintptr_t)binary : (uint64_t)(uintptr_t)path;
	uint64_t *known = map_find(&m->by_identity, key);
	int r;

	if (known) {
		*ret = (uint32_t)*known;
		return 0;
	}
	r = images_reserve(m);
	if (r < 0)
		return r;
	if (map_put(&m->by_identity, key, m->count) < 0)
		return -ENOMEM;
	m->list[m->count] = (struct image){
		.binary = binary ? binary_ref(binary) : NULL,
		.path = str_ref(path),
	};
	*ret = m->count++;
	return 0;
}

static int find_identity(struct images *m, struct mapped_file *file, uint32_t *ret)
{
	struct binary *binary = file->state == MAPPED_READY ? file->binary : NULL;

	return images_add_identity(m, binary, binary && binary->path ? binary->path : file->path, ret);
}

int images_take(struct images *m, const struct image *image)
{
	uint32_t number;
	int r = images_add_identity(m, image->binary, image->path, &number);

	return r < 0 ? r : (int)number;
}

int images_find(struct images *m, struct mapped_file *file)
{
	struct binary *binary = file->state == MAPPED_READY ? file->binary : NULL;
	uint64_t *known = map_find(&m->by_file, (uint64_t)(uintptr_t)file);
	uint32_t image;
	int r;

	/* A file may become ready in the middle of an interval. */
	if (known && m->list[*known].binary == binary)
		return (int)*known;
	r = find_identity(m, file, &image);
	if (r < 0)
		return r;
	if (map_put(&m->by_file, (uint64_t)(uintptr_t)file, image) < 0)
		return -ENOMEM;
	if (!known)
		mapped_file_ref(file);
	return (int)image;
}
