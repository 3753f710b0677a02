/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a linker's name to the one that is shown, and which of several names
 * of one function people know. Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_NAMING_H
#define OTP_SYMBOL_NAMING_H

#include "symbol/symbol.h"

/*
 * The readable name (a new reference): version cut ("memcpy@@GLIBC_2.14"), the
 * compiler's mark of a clone (".cold", ".isra.0") cut or kept, demangled, then
 * suffix. -ENOENT for an empty name, -ENOMEM.
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

/* Local labels, annobin's and the marks between code and data ("$x", "$d") are no functions. */
bool name_is_label(const char *name, bool untyped);

#endif
