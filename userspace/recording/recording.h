/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was received, merged: any number of OTLP requests as one set of
 * tables, each thing once, so that profiles of many intervals and hosts can be
 * written as one file of any format.
 *
 * Called by the verbs, one thread. recording_read (read.c) adds a
 * request; the renderers read. Numbers are indexes into the tables; number 0
 * of each table is its zero value, as in OTLP's own dictionary.
 * Bounds: RECORDING_* below; a request that would pass one is refused.
 */
#ifndef OTP_RECORDING_RECORDING_H
#define OTP_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

#define RECORDING_TABLE_MAX   (8u << 20)          /* entries of any one table */
#define RECORDING_DEPTH_MAX   8192u               /* locations of a stack, inlined lines of a location */
#define RECORDING_TOTAL_MAX   ((1ULL << 53) - 1)  /* sum of all values: exact in JavaScript too */
#define RECORDING_FRAMES_MAX  (1ULL << 28)        /* frames of all samples: the work of a renderer */
#define RECORDING_REQUEST_MAX (64u << 20)         /* bytes of one request, OTLP's own limit */

/* Keys of the tables. No padding: they are compared as bytes. */
struct rec_attribute {
	uint32_t key, unit; /* strings */
	uint32_t packed;    /* in values: the encoded AnyValue, references resolved */
	uint32_t text;      /* string: the value as people read it */
	uint32_t type;      /* enum otlp_value_type */
	uint32_t reserved;
	int64_t number; /* of OTLP_VALUE_INT */
};

struct rec_function {
	uint32_t name, system_name, file; /* strings */
	uint32_t reserved;
	int64_t start_line;
};

struct rec_mapping {
	uint64_t start, limit, offset;
	uint32_t file; /* string */
	uint32_t attributes; /* set */
};

struct rec_line {
	uint32_t function;
	uint32_t reserved;
	int64_t line, column;
};

struct rec_location {
	uint64_t address;
	uint32_t mapping;
	uint32_t attributes; /* set */
	struct rec_line lines[]; /* innermost inlined first */
};

struct rec_link {
	uint8_t trace_id[16], span_id[8];
};

struct rec_resource {
	uint32_t attributes; /* set */
	uint32_t schema_url; /* string */
};

struct rec_scope {
	uint32_t name, version, schema_url; /* strings */
	uint32_t attributes; /* set */
};

/* Samples of one series may be added up. */
struct rec_series {
	uint32_t resource, scope;
	uint32_t type, unit, period_type, period_unit; /* strings */
	uint32_t attributes; /* set */
	uint32_t reserved;
	int64_t period;
};

struct rec_sample {
	uint32_t series, stack;
	uint32_t attributes; /* set */
	uint32_t link;
};

struct rec_times {
	uint64_t start_ns, end_ns; /* Unix; 0: unknown */
};

struct recording {
	struct intern strings;    /* NUL-terminated, valid UTF-8 */
	struct intern values;     /* packed AnyValue */
	struct intern attributes; /* struct rec_attribute */
	struct intern sets;       /* uint32_t[]: attributes, ascending */
	struct intern functions, mappings, locations, links;
	struct intern stacks; /* uint32_t[]: locations, innermost first */
	struct intern resources, scopes, series, samples;
	uint64_t *counts;        /* by sample: its value, added up */
	uint32_t counts_cap;
	struct rec_times *times; /* by series */
	uint32_t times_cap;
	uint64_t total, frames, requests;
};

int recording_new(struct recording **ret);
struct recording *recording_free(struct recording *r); /* NULL */
static inline void recording_freep(struct recording **slot)
{
	recording_free(*slot);
}

/*
 * Adds one ExportProfilesServiceRequest. -EBADMSG: it is none, or an index
 * is out of range; -E2BIG: a bound; -ENOMEM. A request that is refused may
 * have left entries in the tables, but no sample.
 */
int recording_read(struct recording *r, const void *data, size_t len);
/* A file, as otprofd and other OTLP file writers that write raw requests make it. -errno, or as above. */
int recording_read_file(struct recording *r, int dirfd, const char *path);
/* All *.otlp files of a directory, by name: how many, or the first error and the name of its file ("": the directory). */
int recording_read_directory(struct recording *r, const char *path, char *ret_name, size_t size);
/* What recording_read's error means, in words. */
const char *recording_strerror(int err);

/* Building blocks, for the reader and tests. len without NUL; bad UTF-8 becomes U+FFFD. */
int recording_string(struct recording *r, const char *s, size_t len, uint32_t *ret);
int recording_add(struct recording *r, const struct rec_sample *s, uint64_t count);
int recording_span(struct recording *r, uint32_t series, uint64_t start_ns, uint64_t end_ns);

static inline const char *recording_str(const struct recording *r, uint32_t number)
{
	return intern_key(&r->strings, number);
}

static inline const uint32_t *recording_set(const struct recording *r, uint32_t set, size_t *ret_n)
{
	*ret_n = intern_len(&r->sets, set) / sizeof(uint32_t);
	return intern_key(&r->sets, set);
}

static inline const uint32_t *recording_stack(const struct recording *r, uint32_t stack, size_t *ret_n)
{
	*ret_n = intern_len(&r->stacks, stack) / sizeof(uint32_t);
	return intern_key(&r->stacks, stack);
}

static inline size_t recording_lines(const struct recording *r, uint32_t location)
{
	return (intern_len(&r->locations, location) - sizeof(struct rec_location)) / sizeof(struct rec_line);
}

/* The attribute of that key in a set, or NULL. */
const struct rec_attribute *recording_find(const struct recording *r, uint32_t set, const char *key);
/* Its text; NULL where there is none. */
const char *recording_text(const struct recording *r, uint32_t set, const char *key);
/* Text of a resource's attribute, for one of the sample's series. */
const char *recording_resource_text(const struct recording *r, uint32_t series, const char *key);

/*
 * The series that one picture can hold: all have the same type of sample.
 * CPU samples where there are any, else the type that came first.
 */
struct rec_view {
	uint32_t type, unit, period_type, period_unit;
	int64_t period; /* of the first such series; 0: unknown */
	uint64_t start_ns, end_ns;
	uint64_t samples;    /* sum of values */
	uint64_t other;      /* sum of values of samples of other types */
	uint32_t services, hosts; /* distinct */
	const char *host; /* the host's name where there is just one, else NULL; borrowed */
	bool period_mixed;
};
void recording_view(const struct recording *r, struct rec_view *ret);
bool recording_in_view(const struct recording *r, const struct rec_view *v, uint32_t series);
/* What a person calls the workload of a series: never empty. */
const char *recording_service(const struct recording *r, uint32_t series);

#endif
