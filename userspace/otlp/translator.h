/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates the dictionary of one request for a sink: an index of the request
 * becomes the sink's number, by a call to the sink at its first use, later
 * from a table.
 *
 * Called by the reader (read.c), one thread. Embedded there: translator_init,
 * translator_done. The request and the sink are borrowed and outlive it.
 * Errors: -EBADMSG, an index out of range; -E2BIG, deeper than the limit;
 * -ENOMEM; else the sink's.
 * Bounds: each table has as many entries as the request's.
 */
#ifndef OTP_OTLP_TRANSLATOR_H
#define OTP_OTLP_TRANSLATOR_H

#include "base/buf.h"
#include "otlp/messages.h"
#include "otlp/sink.h"

struct memo {
	struct memo_entry *entries; /* owned, by index */
	size_t n;
};

/* The replacement of empty tables: one zero value each, at index 0. */
struct translator_zero {
	OtlpDictionary dictionary;
	OtlpKeyValueAndUnit attribute, *attributes;
	OtlpFunction function, *functions;
	OtlpMapping mapping, *mappings;
	OtlpLocation location, *locations;
	OtlpLink link, *links;
	OtlpStack stack, *stacks;
	char string[1], *strings;
};

struct translator {
	OtlpDictionary *from; /* borrowed: no table of it is empty */
	const struct otlp_sink *sink;
	void *ctx;
	uint32_t depth; /* limit */
	uint32_t space; /* of the current resource */
	struct memo strings, attributes, singles, functions, mappings, locations, links, stacks;
	uint8_t *kinds; /* owned, by attribute: the frame kind that it names */
	struct buf set, lines, stack; /* scratch of one translation each */
	struct translator_zero zero;
};

/* t must not move afterwards. from, which may be NULL, is changed: its strings are cleaned, its empty tables filled. */
int translator_init(struct translator *t, OtlpDictionary *from, const struct otlp_sink *sink, void *ctx, uint32_t depth);
void translator_done(struct translator *t);

int translator_text(struct translator *t, int32_t index, struct sink_text *ret);
/* A text that stands in the request itself; NULL is "". It is cleaned in place. */
int translator_inline(struct translator *t, char *s, struct sink_text *ret);
/* Makes the value's references inline. */
int translator_value(struct translator *t, OtlpAnyValue *v);
int translator_set(struct translator *t, const int32_t *indices, size_t n, uint32_t *ret);
int translator_stack(struct translator *t, int32_t index, uint32_t *ret);
int translator_link(struct translator *t, int32_t index, uint32_t *ret);

#endif
