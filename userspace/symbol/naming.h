/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a linker's name to the one that is shown, and the choice among several
 * names of one function. Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_NAMING_H
#define OTP_SYMBOL_NAMING_H

#include "symbol/symbol.h"

/*
 * The readable name (a new reference): without its version
 * ("memcpy@@GLIBC_2.14"), with or without the compiler's mark of a clone
 * (".cold", ".isra.0"), demangled, then suffix. -ENOENT for an empty name,
 * -ENOMEM.
 */
int name_make(const char *linker_name, const char *suffix, bool show_clones, struct str **ret);

/* Length of the name without the marks of clones. */
size_t name_without_clones(const char *name);

struct name_traits {
	bool local, weak, untyped;
};

/*
 * Lower is better: exported before local, then fewer leading underscores,
 * then typed before not, strong before weak, short before long.
 */
uint32_t name_rank(const struct name_traits *t, const char *name);

/* Not a function: a local label, annobin's, or a mark between code and data ("$x", "$d"). */
bool name_is_label(const char *name, bool untyped);

#endif
