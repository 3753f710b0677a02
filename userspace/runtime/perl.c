// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "runtime/runtime.h"

static const char *const perl_markers[] = {NULL};

static int perl_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	return -ENOTSUP;
}

static int perl_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
			  struct runtime_function *ret)
{
	return -ENOTSUP;
}

static int perl_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	return -EBADMSG;
}

const struct runtime_ops runtime_perl = {
	.name = "perl",
	.label = "Perl",
	.kind = KIND_PERL,
	.markers = perl_markers,
	.attach = perl_attach,
	.decode = perl_decode,
	.frame = perl_frame,
};
