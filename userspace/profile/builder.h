/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a profile_builder: the counts between two encodings.
 * Used within profile/ only.
 */
#ifndef OTP_PROFILE_BUILDER_H
#define OTP_PROFILE_BUILDER_H

#include "base/intern.h"
#include "profile/images.h"
#include "profile/profile.h"
#include "profile/share.h"

/* Bytes of the functions and files of code that names itself, of all workloads together (profile/share.h). */
#define BUILDER_TEXT_MAX (16u << 20)

/*
 * Keys of the sets. Numbers refer to the other sets; text is a shared string.
 * A location is identified by an address, or is code that names itself: both
 * forms of the key begin with the head, where is_code distinguishes them.
 */
struct location_head {
	uint8_t kind;     /* enum frame_kind */
	uint8_t is_code;  /* struct code_key */
	uint8_t named_by; /* of code: enum name_source; else 0 */
	uint8_t is_creator; /* of an address: FRAME_CREATOR */
};

struct location_key {
	union {
		struct {
			struct location_head head;
			uint32_t image; /* of native code: its number in images; else 0 */
		};
		uint64_t word;
	};
	uint64_t address; /* in the file, the kernel or the process (caller: inside its call); of a marker its number */
};

/* Head and image in one store: a hash that reads eight bytes waits for smaller stores to them, frame by frame. */
static inline struct location_key location_key_of(uint8_t kind, uint32_t image, uint64_t address)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "kind is the lowest byte of the word");
	return (struct location_key){.word = kind | (uint64_t)image << 32, .address = address};
}

struct code_key {
	struct location_head head;
	uint32_t line, column, start_line;
	struct str *function, *file; /* held by the builder's text; NULL: unknown */
};

struct sample_key {
	uint32_t workload;
	uint32_t stack;
	uint32_t slot; /* of the origin */
	/* The fields of SAMPLE_ATTRIBUTES: zero unless selected; text is clean, and the builder holds references. */
	uint32_t pid, tid, cpu;
	struct str *comm, *exe, *labels;
};

/* The key is compared as bytes: if an attribute leaves padding, a reserved field fills it and is added here. */
#define X(NAME, key, type, field) + sizeof(((struct sample_key *)0)->field)
_Static_assert(sizeof(struct sample_key) == 3 * sizeof(uint32_t) SAMPLE_ATTRIBUTES(X), "padding in struct sample_key");
#undef X

/* The counts of one key. */
struct sample_count {
	uint64_t samples;
	uint64_t value; /* how much of the origin these stand for */
	uint64_t guessed[FRAME_GUESS_NR]; /* frames of all these samples, by how they were found */
};

struct profile_builder {
	const struct profile_config *cfg; /* borrowed */
	struct images images;
	struct intern locations; /* struct location_key, struct code_key */
	struct intern stacks;    /* location numbers, innermost first */
	struct intern samples;   /* struct sample_key */
	struct intern workloads; /* struct workload *, one reference each */
	uint32_t *users;         /* by location number: the workload that brought it; owned */
	uint32_t users_cap;
	struct share text;       /* functions and files of struct code_key */
	struct sample_count *counts; /* by sample number; owned */
	uint32_t counts_cap;
	struct ledger_counts total;
	struct profile_top top;
	struct profile_stats stats;
	uint32_t scratch[PROFILE_FRAMES_MAX];
};

static inline const struct sample_key *builder_sample(const struct profile_builder *b, uint32_t number)
{
	return intern_key(&b->samples, number);
}

/* Valid for both forms of the key; then builder_code for code, else builder_location. */
static inline const struct location_head *builder_location_head(const struct profile_builder *b, uint32_t number)
{
	return intern_key(&b->locations, number);
}

static inline const struct location_key *builder_location(const struct profile_builder *b, uint32_t number)
{
	return intern_key(&b->locations, number);
}

static inline const struct code_key *builder_code(const struct profile_builder *b, uint32_t number)
{
	return intern_key(&b->locations, number);
}

static inline struct workload *builder_workload(const struct profile_builder *b, uint32_t number)
{
	return *(struct workload *const *)intern_key(&b->workloads, number);
}

static inline const uint32_t *builder_stack(const struct profile_builder *b, uint32_t number, uint32_t *ret_count)
{
	*ret_count = (uint32_t)(intern_len(&b->stacks, number) / sizeof(uint32_t));
	return intern_key(&b->stacks, number);
}

/* Adds to the counts of this key; the builder takes references of its own. */
int builder_count(struct profile_builder *b, const struct sample_key *key, const struct sample_count *count);
/*
 * The number of a new or existing location, code or workload: 0 or negative
 * errno. The builder takes references. workload: the number of the one that a
 * new location is counted for; past its share in BUILDER_TEXT_MAX, new code
 * has no file, or no name either.
 */
int builder_add_location(struct profile_builder *b, const struct location_key *key, uint32_t workload, uint32_t *ret);
int builder_add_code(struct profile_builder *b, const struct code_key *key, uint32_t workload, uint32_t *ret);
int builder_add_workload(struct profile_builder *b, struct workload *w, uint32_t *ret);
void builder_reset(struct profile_builder *b); /* begins a new interval; releases all references */

#endif
