// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "runtime/runtime.h"

static const char *const ruby_markers[] = {NULL};

static int ruby_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	return -ENOTSUP;
}

static int ruby_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
			  struct runtime_function *ret)
{
	return -ENOTSUP;
}

static int ruby_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	return -EBADMSG;
}

const struct runtime_ops runtime_ruby = {
	.name = "ruby",
	.label = "Ruby",
	.kind = KIND_RUBY,
	.markers = ruby_markers,
	.attach = ruby_attach,
	.decode = ruby_decode,
	.frame = ruby_frame,
};
