// SPDX-License-Identifier: Apache-2.0
#include "runtime/ruby.h"

/* Defined by libruby and by programs that link it statically, which export it to their extensions. */
static const char *const ruby_markers[] = {"ruby_run_node", NULL};

const struct runtime_ops runtime_ruby = {
	.name = "ruby",
	.label = "Ruby",
	.kind = KIND_RUBY,
	.markers = ruby_markers,
	.attach = ruby_attach,
	.decode = ruby_decode,
	.frame = ruby_frame,
};
