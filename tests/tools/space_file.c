// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/space_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"

struct line {
	uint64_t start, end, offset;
	char perms[5];
	const char *path;
};

static int line_parse(const char *text, struct line *ret)
{
	int at = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &ret->start, &ret->end, ret->perms,
		   &ret->offset, &at) < 4 ||
	    !at)
		return -EBADMSG;
	ret->path = text + at;
	return 0;
}

static void open_path(struct mapped_file *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	f->kind = MAPPED_FILE;
	f->state = fd >= 0 && binary_open(fd, path, &f->binary) == 0 ? MAPPED_READY : MAPPED_FAILED;
}

static struct mapped_file *file_new(const struct line *l, const void *vdso, size_t vdso_len)
{
	struct mapped_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->refs = 1;
	f->path = str_get_c(l->path);
	f->state = MAPPED_READY;
	if (l->path[0] == '/') {
		open_path(f, l->path);
	} else if (!strcmp(l->path, "[vdso]")) {
		f->kind = MAPPED_VDSO;
		if (!vdso || binary_open_memory(vdso, vdso_len, "[vdso]", &f->binary) < 0)
			f->state = MAPPED_FAILED;
	} else {
		f->kind = strcmp(l->path, "[vsyscall]") ? MAPPED_ANON : MAPPED_VSYSCALL;
	}
	return f;
}

/* Mappings of one path are one file, as the process table has it. */
static struct mapped_file *file_find(const struct space *s, const char *path)
{
	for (uint32_t i = 0; path[0] == '/' && i < s->count; i++)
		if (!strcmp(str_c(s->maps[i].file->path), path))
			return mapped_file_ref(s->maps[i].file);
	return NULL;
}

int space_add_line(struct space **slot, const char *text, const void *vdso, size_t vdso_len)
{
	struct mapped_file *f;
	struct line l;
	int err = line_parse(text, &l);

	if (err < 0 || l.perms[2] != 'x')
		return err;
	f = file_find(*slot, l.path);
	if (!f)
		f = file_new(&l, vdso, vdso_len);
	if (!f)
		return -ENOMEM;
	err = space_map(slot, l.start, l.end, l.offset, f);
	mapped_file_put(f);
	return err;
}
