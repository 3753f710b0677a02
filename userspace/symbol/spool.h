/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending to a file through a buffer, and sorting more records than memory
 * should hold: sorted runs go to the scratch file and are merged at the end.
 *
 * Used by index_build, one thread, in a process of its own. The first error
 * stays and is returned at the end, so that callers need not check each call.
 * A full disk is -EDQUOT, as an exhausted quota is.
 */
#ifndef OTP_SYMBOL_SPOOL_H
#define OTP_SYMBOL_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#define SPOOL_BUFFER 65536

struct spool {
	int fd; /* borrowed */
	int error;
	uint64_t start, end; /* file offsets; end is where the next byte goes */
	uint64_t limit;	     /* end may not pass it: -EFBIG */
	size_t len;
	uint8_t buffer[SPOOL_BUFFER];
};

void spool_init(struct spool *s, int fd, uint64_t start, uint64_t limit);
void spool_add(struct spool *s, const void *data, size_t len);
int spool_flush(struct spool *s); /* 0, or the first error */

/* The scratch file is allocated from its beginning, in pages. */
struct scratch {
	int fd;	      /* borrowed */
	uint64_t end;
	uint64_t limit;
};

/* -ENOSPC past the limit. */
int scratch_take(struct scratch *s, uint64_t bytes, uint64_t *ret_offset);

struct sort_record {
	uint64_t key;
	uint32_t v[4];
};

typedef int sort_order_fn(const void *a, const void *b); /* of struct sort_record; equal ones come in any order */
typedef int sort_take_fn(void *ctx, const struct sort_record *r); /* negative ends it */

#define SORT_MEMORY   16384 /* records sorted at a time */
#define SORT_RUNS_MAX 4096

struct sorter;
int sorter_new(struct scratch *scratch, sort_order_fn *order, struct sorter **ret);
struct sorter *sorter_free(struct sorter *s); /* NULL */
/* -ENOSPC: too many; earlier records stay valid. -EDQUOT and others: none of them do. */
int sorter_add(struct sorter *s, const struct sort_record *r);
/* All in order; once. */
int sorter_finish(struct sorter *s, sort_take_fn *take, void *ctx);

#endif
