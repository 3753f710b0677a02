/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locations of an interval as they leave the host: names, addresses
 * relative to their file or module, and mappings. Made once per encoding, one
 * entry for each location of the builder. Used within profile/ only.
 *
 * Addresses: in a file its own (ELF vaddr), in the kernel relative to the
 * module; of a caller inside the call instruction (return address - 1), as the
 * protocol allows for all but the leaf, so that a lookup needs no correction.
 * Code without a file has its address in the process. Addresses of 2^63 and
 * above are replaced by 0.
 *
 * The linker's name of a function (C++: mangled) is not sent: on a mixed load
 * with C++ it made a compressed request 14 % larger, and no receiver shows it.
 *
 * Bounds: a name has NAMES_ONE_MAX bytes at most. Past the share in
 * NAMES_ALL_MAX of the workload that first used a location (profile/share.h),
 * long names are cut short and long source files left out.
 */
#ifndef OTP_PROFILE_NAMES_H
#define OTP_PROFILE_NAMES_H

#include "base/ledger.h"
#include "profile/builder.h"

#define NAMES_ONE_MAX 4096
#define NAMES_ALL_MAX (16u << 20)

struct named_line {
	struct str *name; /* owned, clean, never blank */
	struct str *file; /* owned, clean, or NULL */
	uint32_t line, column, start_line;
};

struct named_mapping {
	uint64_t start, limit, offset;
	struct str *filename; /* owned, clean */
	struct str *gnu, *htlhash; /* owned; hexadecimal, or NULL */
};

struct named_location {
	uint64_t address;
	uint32_t mapping; /* index in mappings + 1, 0: none */
	uint32_t first;   /* of its lines */
	uint32_t text_bytes; /* of the names of its lines */
	uint16_t count;      /* at least 1 */
	uint8_t kind;   /* enum frame_kind */
	uint8_t source; /* enum name_source */
};

/* The labels of a sample; both strings owned. */
struct named_labels {
	uint32_t count;
	struct {
		struct str *key, *value; /* the key with the attribute's name before it */
	} of[PROFILE_LABELS_MAX];
};

struct names {
	struct named_location *locations; /* by the builder's number; this and the next two: owned */
	struct named_line *lines;
	struct named_mapping *mappings;
	uint32_t nr_locations, nr_lines, cap_lines, nr_mappings, cap_mappings;
	uint32_t *of_image;   /* index in mappings + 1 by image number, 0: none yet; owned */
	struct map of_module; /* address of the module's name -> index in mappings + 1 */
	struct share text;    /* of all long names and files */
	struct map of_labels; /* text of labels -> struct named_labels, owned */
	uint32_t user;        /* the workload that brought the location that is being named */
};

/* Resolves every location. 0, and ret is the caller's; -ENOMEM. */
int names_make(struct profile_builder *b, struct names *ret);
void names_done(struct names *n);
/* Of a sample of the builder; NULL: none. Borrowed until names_done. */
const struct named_labels *names_labels(const struct names *n, const struct str *text);

/* names_labels.c, for names.c. Splits the labels of all samples. -ENOMEM. */
int names_make_labels(struct names *n, const struct profile_builder *b);
void names_free_labels(struct names *n);

#endif
