// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets by version: offsetof() in a program compiled against the headers of
 * libperl5.30 (Ubuntu focal), 5.32 (Debian bullseye), 5.34 (jammy), 5.36
 * (bookworm), 5.38 (noble), 5.40 and 5.42 (sid), 5.44 (experimental), and of perl's
 * tag v5.28.3, each with USE_ITHREADS and without: intrpvar.h (the interpreter), cop.h (contexts,
 * COPs), cv.h and sv.h (subs), gv.h, hv.h, opnames.h. Within one minor version
 * Perl keeps binary compatibility, so that a row holds for all its releases.
 */
#include "base/cleanup.h"
#include "runtime/perl.h"

static const struct perl_layout perl_layouts[] = {
	{28, .curcop = 224, .curstackinfo = 240, .runops = 2280, .main_start = 1832,
	 .context = 96, .context_cv = 64, .stash_aux = 0, .nextstate = 195},
	{30, .curcop = 224, .curstackinfo = 240, .runops = 2280, .main_start = 1832,
	 .context = 96, .context_cv = 64, .stash_aux = 0, .nextstate = 195},
	{32, .curcop = 224, .curstackinfo = 240, .runops = 2304, .main_start = 1832,
	 .context = 104, .context_cv = 72, .stash_aux = 0, .nextstate = 195},
	{34, .curcop = 208, .curstackinfo = 224, .runops = 2288, .main_start = 1816,
	 .context = 104, .context_cv = 72, .stash_aux = 0, .nextstate = 195},
	{36, .curcop = 208, .curstackinfo = 224, .runops = 2288, .main_start = 1816,
	 .context = 104, .context_cv = 72, .stash_aux = 32, .nextstate = 195},
	{38, .curcop = 208, .curstackinfo = 224, .runops = 2072, .main_start = 1600,
	 .context = 104, .context_cv = 72, .stash_aux = 32, .nextstate = 198},
	{40, .curcop = 208, .curstackinfo = 224, .runops = 2072, .main_start = 1600,
	 .context = 104, .context_cv = 72, .stash_aux = 32, .nextstate = 198},
	{42, .curcop = 208, .curstackinfo = 224, .runops = 2072, .main_start = 1600,
	 .context = 104, .context_cv = 72, .stash_aux = 32, .nextstate = 202},
	{44, .curcop = 208, .curstackinfo = 224, .runops = 2072, .main_start = 1600,
	 .context = 104, .context_cv = 72, .stash_aux = 32, .nextstate = 202},
};

const struct perl_layout *perl_layout_of(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_SIZE(perl_layouts); i++)
		if (perl_layouts[i].version == version)
			return &perl_layouts[i];
	return NULL;
}
