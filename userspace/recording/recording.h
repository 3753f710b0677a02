/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles in memory: any number of OTLP requests merged into one set of
 * tables, each entry once, so that profiles of many intervals and hosts can be
 * written as one file of any format.
 *
 * Called by the command line tool, and by whatever stores profiles, one thread
 * per recording: recording_read and recording_read_file add requests, renderers
 * read. Numbers are
 * indexes into the tables; number 0 of each table but series and samples is
 * its zero value, as in OTLP's own dictionary.
 * Ownership: the recording owns its tables; what the accessors return is
 * borrowed until the next request, texts until recording_free.
 * Units: the unit of a value is that of its series; times are Unix
 * nanoseconds.
 * Bounds: recording_limits, given by the creator.
 * Errors: negative errno; a request that is refused leaves the recording as
 * it was.
 */
#ifndef OTP_RECORDING_RECORDING_H
#define OTP_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "otlp/limits.h"

struct recording_limits {
	struct otlp_limits request;
	uint32_t entries; /* of any one table */
	size_t bytes;     /* of the keys of any one table */
	uint64_t total;   /* sum of all values */
	uint64_t frames;  /* of all distinct samples: the work of a renderer */
};

/* Keys of the tables. No padding: they are compared as bytes. */
struct rec_attribute {
	uint32_t key, unit; /* strings */
	uint32_t packed;    /* in values: the encoded AnyValue, references resolved */
	uint32_t text;      /* string: the value in readable form */
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
	uint32_t kind;       /* enum frame_kind: of its frames */
	uint32_t reserved;
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

/* Whose samples a resource has: strings, taken from its attributes when it is read. */
struct rec_workload {
	uint32_t service; /* the display name, never empty */
	uint32_t host;    /* 0: unknown */
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

/* Widens to by a time; a start of 0 is unknown. */
static inline void rec_times_add(struct rec_times *to, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns && (!to->start_ns || start_ns < to->start_ns))
		to->start_ns = start_ns;
	if (end_ns > to->end_ns)
		to->end_ns = end_ns;
}

enum { RECORDING_TABLES = 13 };
/* Strings of every recording. */
enum { RECORDING_NO_STRING, RECORDING_UNKNOWN_SERVICE };

struct recording {
	struct recording_limits limits;
	bool drops_addresses; /* of frames that have names, as they are read; false at first */
	struct intern strings;    /* NUL-terminated, valid UTF-8 */
	struct intern values;     /* packed AnyValue */
	struct intern attributes; /* struct rec_attribute */
	struct intern sets;       /* uint32_t[]: attributes, ascending */
	struct intern functions, mappings, locations, links;
	struct intern stacks; /* uint32_t[]: locations, innermost first */
	struct intern resources, scopes, series, samples;
	uint64_t *sums;          /* owned, by sample: its values, added up */
	uint32_t sums_cap;
	struct rec_times *times; /* owned, by series */
	uint32_t times_cap;
	struct rec_workload *workloads; /* owned, by resource */
	uint32_t workloads_cap;
	uint64_t total, frames, requests;
};

int recording_new(const struct recording_limits *limits, struct recording **ret);
struct recording *recording_free(struct recording *r); /* NULL */
static inline void recording_freep(struct recording **slot)
{
	recording_free(*slot);
}

/* Adds one ExportProfilesServiceRequest. Errors: those of otlp/read.h; -E2BIG, -ENOSPC: a bound of the recording. */
int recording_read(struct recording *r, const void *data, size_t len);
/* A file that holds one request, as otprofd's file destination writes it. */
int recording_read_file(struct recording *r, int dirfd, const char *path);
/* Reads all *.otlp files of a directory, by name. Their number, or an error and its file ("": the directory). */
int recording_read_directory(struct recording *r, const char *path, char *ret_name, size_t size);
/* The message for an error of the calls above; static. */
const char *recording_strerror(int err);

/* Called with one sample, which it may change: 1 keeps it, 0 drops it, or negative errno. */
typedef int recording_rewrite_fn(void *ctx, struct rec_sample *s);
/* Calls rewrite for every sample. On failure all samples stay as they were. */
int recording_rewrite(struct recording *r, recording_rewrite_fn *rewrite, void *ctx);

/* Whether attributes of that key stay. */
typedef bool recording_keep_fn(void *ctx, const char *key);
struct recording_keep {
	recording_keep_fn *resource, *sample;
	void *ctx;
};
/* Leaves the other attributes out; samples that are alike without them are added up. On failure samples stay. */
int recording_narrow(struct recording *r, const struct recording_keep *keep);

/* All tables, for code that treats them alike; borrowed. */
void recording_tables(struct recording *r, struct intern *ret[RECORDING_TABLES]);

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

/*
 * The attribute of that key in a set, or NULL. Compares the key with every one
 * of the set, which is as long as its writer wanted: called once for each entry
 * of a table, never for each sample or series.
 */
const struct rec_attribute *recording_find(const struct recording *r, uint32_t set, const char *key);

static inline const struct rec_workload *recording_workload(const struct recording *r, uint32_t series)
{
	const struct rec_series *s = intern_key(&r->series, series);

	return &r->workloads[s->resource];
}

/* The display name of a series' workload: never empty. */
static inline const char *recording_service(const struct recording *r, uint32_t series)
{
	return recording_str(r, recording_workload(r, series)->service);
}

#endif
