// SPDX-License-Identifier: Apache-2.0
#include "runtime/perl.h"

/* Exported by every perl and libperl, for XS modules, which expand CALLRUNOPS and the like. */
static const char *const perl_markers[] = {"Perl_runops_standard", NULL};

const struct runtime_ops runtime_perl = {
	.name = "perl",
	.label = "Perl",
	.kind = KIND_PERL,
	.markers = perl_markers,
	.attach = perl_attach,
	.decode = perl_decode,
	.frame = perl_frame,
};
