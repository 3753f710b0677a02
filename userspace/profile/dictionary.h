/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of one request, with exact sizes on the wire. Entry 0 of each is
 * the zero value; equal entries are one. Depends on the data model, not on the
 * encoding library. Used within profile/ only.
 *
 * Text is referred to by shared string, borrowed from the names and the
 * builder, which outlive the dictionary.
 */
#ifndef OTP_PROFILE_DICTIONARY_H
#define OTP_PROFILE_DICTIONARY_H

#include "base/intern.h"
#include "profile/names.h"

struct dict_mapping {
	uint64_t start, limit, offset;
	uint32_t filename;
	uint32_t attributes[2]; /* 0: none */
	uint32_t reserved;
};

struct dict_line {
	uint32_t function, line, column;
};

struct dict_location {
	uint64_t address;
	uint32_t mapping;
	uint32_t attribute; /* profile.frame.type; 0: none */
	struct dict_line lines[];
};

struct dict_function {
	uint32_t name, file, start_line;
};

enum dict_value { DICT_STRING, DICT_INT };

struct dict_attribute {
	uint32_t key;
	uint32_t type; /* enum dict_value */
	uint64_t value; /* struct str *, or the number */
};

#define DICTIONARY_TEXTS_MAX 64

struct dictionary {
	struct intern strings; /* struct str * */
	struct intern mappings;
	struct intern locations;
	struct intern functions;
	struct intern attributes;
	struct intern stacks; /* location numbers, leaf first */
	size_t bytes;         /* encoded, without the dictionary's own head */
	const struct names *names; /* borrowed */
	/* Numbers of entries already added, 0: none yet. */
	uint32_t *of_location; /* by the names' location; owned */
	uint32_t *of_mapping;  /* by the names' mapping; owned */
	uint32_t of_type[KIND_NR]; /* profile.frame.type, by enum frame_kind */
	struct str *keep[DICTIONARY_TEXTS_MAX]; /* constant text; owned */
	uint32_t nr_keep;
};

/* A state that dictionary_return restores. */
struct dictionary_mark {
	uint32_t strings, mappings, locations, functions, attributes, stacks;
	size_t bytes;
};

int dictionary_init(struct dictionary *d, const struct names *n); /* n: borrowed for its life */
void dictionary_done(struct dictionary *d);
void dictionary_mark(const struct dictionary *d, struct dictionary_mark *ret);
void dictionary_return(struct dictionary *d, const struct dictionary_mark *to);

/* Each: 0 and the number of a new or existing entry; negative errno. */
int dictionary_string(struct dictionary *d, struct str *s, uint32_t *ret); /* NULL: 0 */
int dictionary_text(struct dictionary *d, const char *text, uint32_t *ret);
struct str *dictionary_keep(struct dictionary *d, const char *text); /* in no table; borrowed; NULL: no memory */
int dictionary_attribute(struct dictionary *d, const char *key, enum dict_value type, uint64_t value, uint32_t *ret);
int dictionary_label(struct dictionary *d, struct str *key, struct str *value, uint32_t *ret); /* both of the names */
int dictionary_location(struct dictionary *d, uint32_t location, uint32_t *ret); /* number in the names */
/* locations: numbers in the names; scratch: count numbers. */
int dictionary_stack(struct dictionary *d, const uint32_t *locations, uint32_t count, uint32_t *scratch,
		     uint32_t *ret);

static inline struct str *dictionary_str(const struct dictionary *d, uint32_t number)
{
	return *(struct str *const *)intern_key(&d->strings, number);
}

#endif
