// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "runtime/runtime.h"

static const char *const php_markers[] = {NULL};

static int php_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	return -ENOTSUP;
}

static int php_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
			  struct runtime_function *ret)
{
	return -ENOTSUP;
}

static int php_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	return -EBADMSG;
}

const struct runtime_ops runtime_php = {
	.name = "php",
	.label = "PHP",
	.kind = KIND_PHP,
	.markers = php_markers,
	.attach = php_attach,
	.decode = php_decode,
	.frame = php_frame,
};
