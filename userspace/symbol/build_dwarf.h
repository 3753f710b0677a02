/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What build_dwarf and its split units share. Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_BUILD_DWARF_H
#define OTP_SYMBOL_BUILD_DWARF_H

#include <elfutils/libdw.h>

#include "base/hash.h"
#include "symbol/build.h"
#include "symbol/lines.h"

#define KNOWN_FUNCTIONS 16384

struct known_function {
	const void *die;
	uint32_t name, line;
};

struct split; /* a unit's other half, while it is read */

struct dwarf_build {
	struct builder *b;
	const struct image *image, *alt;
	Dwarf *dwarf, *alt_dwarf;
	struct line_sections sections;
	struct line_table lines; /* of the unit at hand */
	bool has_lines;
	struct known_function *known; /* a cache: a later function replaces an earlier one */
	struct map tables;	      /* line tables that were read */
	uint64_t entries;	      /* of trees, counted as they are read */
	size_t input;		      /* bytes read since memory was trimmed */
	uint64_t heap;		      /* least memory that libdw needs */
	struct split *split;	      /* NULL: an ordinary unit */
	struct split *plain;	      /* how an ordinary one lists ranges */
	struct split_package *package;
};

int dwarf_build_tree(struct dwarf_build *d, Dwarf_Die *cu);

/* Split DWARF: the unit in the file is a skeleton, the tree lies in a .dwo file or a .dwp package. */
bool split_is(struct dwarf_build *d, Dwarf_Die *cu);
int split_unit(struct dwarf_build *d, Dwarf_Die *cu);
typedef int split_range_fn(struct dwarf_build *d, uint64_t start, uint64_t end, uint32_t node, unsigned depth);
int split_ranges(struct dwarf_build *d, Dwarf_Die *die, uint32_t node, unsigned depth, split_range_fn *put);
int plain_begin(struct dwarf_build *d, Dwarf_Die *cu);
void split_done(struct dwarf_build *d);

#endif
