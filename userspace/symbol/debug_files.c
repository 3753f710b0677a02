// SPDX-License-Identifier: Apache-2.0
/*
 * Separate debug files: by build-id and by debuglink, in the host's root first,
 * then in the target's, then by build-id over the network, and what dwz shares
 * between several of them.
 * Layouts: GDB manual, "Debugging Information in Separate Files"; dwz(1).
 */
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "symbol/build.h"

#define PATH_BYTES 4096

struct wanted {
	uint8_t id[64];
	size_t id_len;
	bool by_crc; /* no build-id tells whether it is the right one */
	uint32_t crc;
	const char *section; /* that it must have, or be in vain */
};

int debug_open_any(const struct index_job *job, const char *path, int *ret_fd)
{
	int r = -ENOENT;

	for (int root = INDEX_ROOT_HOST; job->open && r < 0 && root <= INDEX_ROOT_TARGET; root++)
		r = job->open(job->ctx, (enum index_root)root, path, ret_fd);
	return r;
}

static int open_image(struct builder *b, enum index_root root, const char *path, struct image *ret, int *ret_fd)
{
	struct stat st;
	int fd, r = b->job->open ? b->job->open(b->job->ctx, root, path, &fd) : -ENOENT;

	if (r < 0)
		return r;
	r = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -EBADMSG :
							 image_open(fd, 0, (uint64_t)st.st_size, &b->scratch, ret);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static bool crc_fits(int fd, uint32_t want)
{
	uint8_t block[16384];
	uLong crc = crc32(0, NULL, 0);
	uint64_t at = 0;
	ssize_t n;

	while ((n = pread(fd, block, sizeof(block), (off_t)at)) > 0) {
		crc = crc32(crc, block, (uInt)n);
		at += (uint64_t)n;
	}
	return n == 0 && (uint32_t)crc == want;
}

static bool has_section(const struct image *m, const char *name)
{
	for (uint32_t i = 0; i < m->nr_sections; i++)
		if (!strcmp(image_section_name(m, &m->sections[i]), name) && m->sections[i].sh_type != SHT_NOBITS)
			return true;
	return false;
}

static bool fits(const struct wanted *w, const struct image *m, int fd)
{
	uint8_t id[64];
	size_t len = image_build_id(m, id);

	if (!has_section(m, w->section))
		return false;
	if (w->id_len)
		return len == w->id_len && !memcmp(id, w->id, len);
	return w->by_crc && crc_fits(fd, w->crc);
}

static int try_path(struct builder *b, const struct wanted *w, enum index_root root, const char *path,
		    struct image *ret)
{
	_cleanup_(closep) int fd = -1;
	uint64_t before = b->scratch.end;
	struct image m;
	int r = open_image(b, root, path, &m, &fd);

	if (r < 0)
		return -ENOENT;
	if (!fits(w, &m, fd)) {
		image_close(&m);
		b->scratch.end = before;
		return -ENOENT;
	}
	*ret = m;
	return 0;
}

static int try_in(struct builder *b, const struct wanted *w, enum index_root root, const char *dir, const char *name,
		  struct image *ret)
{
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -ENOENT;
	return try_path(b, w, root, path, ret);
}

/* Each of the directories for debug files, one after the other. */
static int try_dirs(struct builder *b, const struct wanted *w, enum index_root root, const char *name,
		    struct image *ret)
{
	const char *at = b->job->debug_dirs ? b->job->debug_dirs : "";
	int r = -ENOENT;

	while (r < 0 && *(at += strspn(at, " "))) {
		size_t len = strcspn(at, " ");
		char dir[PATH_BYTES];

		if ((size_t)snprintf(dir, sizeof(dir), "%.*s", (int)MIN(len, sizeof(dir)), at) < sizeof(dir))
			r = try_in(b, w, root, dir, name, ret);
		at += len;
	}
	return r;
}

static void build_id_name(const struct wanted *w, char to[160])
{
	size_t n = (size_t)snprintf(to, 160, ".build-id/%02x/", w->id[0]);

	for (size_t i = 1; i < w->id_len; i++)
		n += (size_t)snprintf(to + n, 160 - n, "%02x", w->id[i]);
	snprintf(to + n, 160 - n, ".debug");
}

static int try_build_id(struct builder *b, const struct wanted *w, enum index_root root, struct image *ret)
{
	char name[160];

	if (w->id_len < 2)
		return -ENOENT;
	build_id_name(w, name);
	return try_dirs(b, w, root, name, ret);
}

/* What is nowhere here may be had from elsewhere; asking for it is what brings it, for the next time. */
static int try_fetched(struct builder *b, const struct wanted *w, struct image *ret)
{
	char id[2 * sizeof(w->id) + 1];
	int r;

	if (w->id_len < 2)
		return -ENOENT;
	for (size_t i = 0; i < w->id_len; i++)
		snprintf(id + 2 * i, 3, "%02x", w->id[i]);
	r = try_path(b, w, INDEX_ROOT_FETCHED, id, ret);
	if (r == 0)
		b->flags |= INDEX_HAS_FETCHED;
	return r;
}

static void directory_of(const char *path, char to[PATH_BYTES])
{
	const char *slash = strrchr(path, '/');

	snprintf(to, PATH_BYTES, "%.*s", slash ? (int)MIN(slash - path, PATH_BYTES - 1) : 0, path);
}

/* A name, padded to four bytes, and the CRC-32 of the file that it names. */
static bool read_link(const struct image *m, const char **ret_name, uint32_t *ret_crc)
{
	struct image_part p;
	size_t len;

	if (!image_section(m, ".gnu_debuglink", &p))
		return false;
	len = strnlen((const char *)p.data, p.len);
	if (!len || len > 255 || ALIGN_UP(len + 1, (size_t)4) + 4 > p.len || memchr(p.data, '/', len))
		return false;
	memcpy(ret_crc, p.data + ALIGN_UP(len + 1, (size_t)4), sizeof(*ret_crc));
	*ret_name = (const char *)p.data;
	return true;
}

static int try_link(struct builder *b, const struct wanted *w, enum index_root root, const char *name,
		    struct image *ret)
{
	char dir[PATH_BYTES], below[PATH_BYTES + 260];
	int r;

	directory_of(b->job->path, dir);
	r = try_in(b, w, root, dir, name, ret);
	if (r < 0) {
		snprintf(below, sizeof(below), ".debug/%s", name);
		r = try_in(b, w, root, dir, below, ret);
	}
	if (r < 0) {
		snprintf(below, sizeof(below), "%s/%s", dir + (*dir == '/'), name);
		r = try_dirs(b, w, root, below, ret);
	}
	return r;
}

int debug_file_open(struct builder *b, const struct image *m, struct image *ret)
{
	static const char *const sections[] = {".debug_info", ".symtab"};
	struct wanted w = {.id_len = 0};
	const char *name = NULL;
	int r = -ENOENT;

	w.id_len = image_build_id(m, w.id);
	w.by_crc = read_link(m, &name, &w.crc);
	for (size_t i = 0; r < 0 && i < ARRAY_SIZE(sections); i++) {
		w.section = sections[i];
		for (int root = INDEX_ROOT_HOST; r < 0 && root <= INDEX_ROOT_TARGET; root++) {
			r = try_build_id(b, &w, (enum index_root)root, ret);
			if (r < 0 && name)
				r = try_link(b, &w, (enum index_root)root, name, ret);
		}
		if (r < 0)
			r = try_fetched(b, &w, ret);
	}
	return r;
}

/* A path, absolute or beside the debug file, and the build-id of what it names. */
int debug_alt_open(struct builder *b, const struct image *m, struct image *ret)
{
	struct wanted w = {.section = ".debug_info"};
	struct image_part p;
	size_t len;
	int r = -ENOENT;

	if (!image_section(m, ".gnu_debugaltlink", &p))
		return -ENOENT;
	len = strnlen((const char *)p.data, p.len);
	if (!len || len + 1 >= p.len || p.len - len - 1 > sizeof(w.id))
		return -ENOENT;
	w.id_len = p.len - len - 1;
	memcpy(w.id, p.data + len + 1, w.id_len);
	for (int root = INDEX_ROOT_HOST; r < 0 && root <= INDEX_ROOT_TARGET; root++) {
		const char *name = (const char *)p.data;

		/* "../../.dwz/x86_64-linux-gnu/a.debug": relative to .build-id/xx/ below a debug directory. */
		if (*name == '/')
			r = try_path(b, &w, (enum index_root)root, name, ret);
		else
			r = try_dirs(b, &w, (enum index_root)root, name + strspn(name, "./"), ret);
		if (r < 0)
			r = try_build_id(b, &w, (enum index_root)root, ret);
		if (r < 0 && *name != '/') {
			char dir[PATH_BYTES];

			directory_of(b->job->path, dir);
			r = try_in(b, &w, (enum index_root)root, dir, name, ret);
		}
	}
	return r < 0 ? try_fetched(b, &w, ret) : r;
}
