// SPDX-License-Identifier: Apache-2.0
/*
 * A function by its Proto: name, file, lines. What lies there must be what was
 * there when the frame was copied.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"

#define NAME_FILE_MAX 128 /* of a file's name in that of a function without one */

/* A chunk that was loaded from a file is called "@file"; others by their text, or as who loaded them says: "=name". */
static int puclua_chunk(struct memory *m, const struct puclua_proto *p, char to[RUNTIME_PATH_MAX])
{
	char text[RUNTIME_PATH_MAX];

	to[0] = '\0';
	if (!p->source) /* as a chunk that was precompiled without it */
		return 0;
	if (puclua_string(m, p->l, p->source, text, sizeof(text)))
		return -ESTALE;
	if (text[0] == '@' || text[0] == '=')
		snprintf(to, RUNTIME_PATH_MAX, "%s", text + 1);
	else
		snprintf(to, RUNTIME_PATH_MAX, "[string \"%.*s\"]", (int)MIN(strcspn(text, "\n"), (size_t)48), text);
	return 0;
}

static void puclua_fallback_name(const struct puclua_proto *p, const char *file, char to[RUNTIME_NAME_MAX])
{
	const char *slash = strrchr(file, '/');

	if (!p->linedefined)
		snprintf(to, RUNTIME_NAME_MAX, "main chunk");
	else
		snprintf(to, RUNTIME_NAME_MAX, "function <%.*s:%u>", NAME_FILE_MAX, slash ? slash + 1 : file, p->linedefined);
}

/* -ESTALE: another one is there now. */
static int puclua_read_sampled(struct memory *m, const struct puclua_layout *l, const struct runtime_frame *f,
			       struct puclua_proto *ret)
{
	int err = puclua_proto_read(m, l, f->key, ret);

	if (err)
		return err;
	if (puclua_cookie_size(ret->sizecode, ret->linedefined) != f->cookie[PUCLUA_COOKIE_SIZE] ||
	    puclua_cookie_source(ret->source, ret->lineinfo, ret->told) != f->cookie[PUCLUA_COOKIE_SOURCE])
		return -ESTALE;
	return 0;
}

int puclua_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret)
{
	const struct puclua_layout *l = puclua_layout_at(a->param[PUCLUA_PARAM_LAYOUT]);
	struct puclua_proto p;
	int err = l ? puclua_read_sampled(m, l, f, &p) : -EBADMSG;

	if (!err)
		err = puclua_chunk(m, &p, ret->file);
	if (!err)
		err = puclua_lines(m, &p, ret);
	if (err)
		return err;
	ret->start_line = p.linedefined;
	if (puclua_name(m, &p, f, ret->name))
		puclua_fallback_name(&p, ret->file, ret->name);
	/* What was read is of that function if it is still there. */
	return puclua_read_sampled(m, l, f, &p);
}
