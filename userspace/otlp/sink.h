/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving side of a reader of OTLP requests (read.h): code that stores
 * samples implements these calls, and the reader translates one request into
 * them. A sink numbers its own entries; the reader remembers, for each entry
 * of the request's dictionary, the number that the sink returned, and uses it
 * wherever the request refers to the entry.
 *
 * Called by otlp_read, on its thread, during one request:
 *
 *   string                      a text, before the first view that holds it.
 *   resource, scope, profile    in the order of the request; OTLP_SKIP leaves
 *                               out everything inside, untranslated and
 *                               unchecked.
 *   attribute, set, mapping,    an entry before the first that refers to it,
 *   function, location, stack,  only if a sample leads to it, and once for
 *   link                        each space (below); an equal set perhaps again.
 *   sample                      prepares: reserves all that add will need.
 *   add                         the value of a prepared sample. Called only
 *                               after the whole request was translated, and
 *                               cannot fail: a refused request adds nothing.
 *
 * Index 0 of a table that the request left out is passed as the zero value.
 * Set 0 is the empty set.
 *
 * Spaces: resource returns a number, the space that its entries belong to.
 * Where the space changes, entries are translated anew. A sink with one set
 * of tables always returns 0; a sink with tables for each workload returns
 * the workload's number, and one dictionary serves all of them. Strings have
 * no space: their numbers hold for the request.
 *
 * Ownership: everything passed is borrowed for the call. Texts are clean
 * (base/utf8.h). ctx is the caller's.
 * Errors: negative errno ends the request and is otlp_read's result.
 */
#ifndef OTP_OTLP_SINK_H
#define OTP_OTLP_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/frame_kind.h"
#include "otlp/value.h"

enum { OTLP_SKIP = 1 };

struct sink_text {
	const char *s;
	uint32_t number; /* returned by string */
};

struct sink_attribute {
	struct sink_text key, unit;
	const OtlpAnyValue *value; /* references resolved; NULL: none */
};

struct sink_resource {
	const struct sink_attribute *attributes;
	size_t n;
	struct sink_text schema_url;
};

struct sink_scope {
	const struct sink_attribute *attributes;
	size_t n;
	struct sink_text name, version, schema_url;
};

struct sink_profile {
	struct sink_text type, unit, period_type, period_unit;
	int64_t period;
	uint64_t start_ns, end_ns; /* Unix; start 0: unknown */
	uint32_t attributes;       /* set */
};

struct sink_function {
	struct sink_text name, system_name, file;
	int64_t start_line;
};

struct sink_mapping {
	uint64_t start, limit, offset;
	struct sink_text file;
	uint32_t attributes; /* set */
};

struct sink_line {
	uint32_t function;
	int64_t line, column;
};

struct sink_location {
	uint64_t address;
	uint32_t mapping, attributes; /* a mapping, a set */
	enum frame_kind kind;         /* of its frames: from profile.frame.type, or KIND_MARKER */
	const struct sink_line *lines; /* innermost inlined first */
	size_t n;
};

struct sink_link {
	uint8_t trace_id[16], span_id[8];
};

struct sink_sample {
	uint32_t stack, attributes, link; /* a stack, a set, a link */
	uint64_t value; /* sum of its values; where it has timestamps only, their number */
};

struct otlp_sink {
	int (*resource)(void *ctx, const struct sink_resource *r, uint32_t *ret_space);
	int (*scope)(void *ctx, const struct sink_scope *s); /* NULL: not called */
	int (*profile)(void *ctx, const struct sink_profile *p);

	int (*string)(void *ctx, const char *s, uint32_t *ret); /* NULL: numbers of texts are 0 */
	/* Both or none: without them every set is 0. */
	int (*attribute)(void *ctx, const struct sink_attribute *a, uint32_t *ret);
	int (*set)(void *ctx, uint32_t *attributes, size_t n, uint32_t *ret); /* n > 0; may reorder */
	int (*link)(void *ctx, const struct sink_link *l, uint32_t *ret); /* NULL: every link is 0 */

	int (*mapping)(void *ctx, const struct sink_mapping *m, uint32_t *ret);
	int (*function)(void *ctx, const struct sink_function *f, uint32_t *ret);
	int (*location)(void *ctx, const struct sink_location *l, uint32_t *ret);
	int (*stack)(void *ctx, const uint32_t *locations, size_t n, uint32_t *ret); /* innermost first */

	int (*sample)(void *ctx, const struct sink_sample *s, uint32_t *ret);
	void (*add)(void *ctx, uint32_t sample, uint64_t value);
};

#endif
