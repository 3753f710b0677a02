/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A package of split units (.dwp): many .dwo files in one, with a table of the
 * parts of its sections that belong to each unit. libdw does not read the
 * table; a section table laid over the file shows it one unit at a time.
 * Used by split.c only.
 */
#ifndef OTP_SYMBOL_SPLIT_PACKAGE_H
#define OTP_SYMBOL_SPLIT_PACKAGE_H

#include "symbol/build_dwarf.h"

struct split_package;

/* The package as if it held this unit only; borrowed until the next call. NULL: no package, or not in it. */
const struct image *split_package_unit(struct dwarf_build *d, uint64_t id);
struct split_package *split_package_free(struct split_package *p); /* NULL */

#endif
