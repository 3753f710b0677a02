// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "runtime/runtime.h"

static const char *const cpython_markers[] = {NULL};

static int cpython_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	return -ENOTSUP;
}

static int cpython_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
			  struct runtime_function *ret)
{
	return -ENOTSUP;
}

static int cpython_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	return -EBADMSG;
}

const struct runtime_ops runtime_cpython = {
	.name = "cpython",
	.label = "Python",
	.kind = KIND_CPYTHON,
	.markers = cpython_markers,
	.attach = cpython_attach,
	.decode = cpython_decode,
	.frame = cpython_frame,
};
