// SPDX-License-Identifier: Apache-2.0
/*
 * A function by its prototype: name, file, lines. What lies there must be what
 * was there when the frame was copied.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/luajit.h"

#define NAME_FILE_MAX 128 /* of a file's name in that of a function without one */

/* A chunk that was loaded from a file is called "@file"; others by their text, or as who loaded them says: "=name". */
static int luajit_chunk(struct memory *m, uint64_t at, char to[RUNTIME_PATH_MAX])
{
	char text[RUNTIME_PATH_MAX];

	if (!luajit_is_string(m, at))
		return -ESTALE;
	if (memory_string(m, at + LUAJIT_STR_BYTES, text, sizeof(text)))
		return -EFAULT;
	if (text[0] == '@' || text[0] == '=')
		snprintf(to, RUNTIME_PATH_MAX, "%s", text + 1);
	else
		snprintf(to, RUNTIME_PATH_MAX, "[string \"%.*s\"]", (int)MIN(strcspn(text, "\n"), (size_t)48), text);
	return 0;
}

static void luajit_fallback_name(const struct luajit_proto *p, const char *file, char to[RUNTIME_NAME_MAX])
{
	const char *slash = strrchr(file, '/');

	if (!p->firstline)
		snprintf(to, RUNTIME_NAME_MAX, "main chunk");
	else
		snprintf(to, RUNTIME_NAME_MAX, "function <%.*s:%u>", NAME_FILE_MAX, slash ? slash + 1 : file, p->firstline);
}

/* -ESTALE: another one is there now. */
static int luajit_read_sampled(struct memory *m, const struct runtime_frame *f, struct luajit_proto *ret)
{
	int err = luajit_proto_read(m, f->key, ret);

	if (err)
		return err;
	if (luajit_cookie_size(ret->sizebc, ret->firstline) != f->cookie[LUAJIT_COOKIE_SIZE] ||
	    luajit_cookie_chunk(ret->chunkname, ret->chunk_head) != f->cookie[LUAJIT_COOKIE_CHUNK])
		return -ESTALE;
	return 0;
}

int luajit_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret)
{
	struct luajit_proto p;
	int err = luajit_read_sampled(m, f, &p);

	if (!err)
		err = luajit_chunk(m, p.chunkname, ret->file);
	if (!err)
		err = luajit_lines(m, &p, ret);
	if (err)
		return err;
	ret->start_line = p.firstline;
	if (luajit_name(m, &p, f, ret->name))
		luajit_fallback_name(&p, ret->file, ret->name);
	/* What was read is of that function if it is still there. */
	return luajit_read_sampled(m, f, &p);
}
