/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of interpreted code: what decoders answered, kept for each process by
 * key and cookies. Equal functions share one object, as workers that were forked
 * from one program have all theirs in common.
 *
 * Called by runtimes*.c, one thread. Bounds: FUNCTIONS_MAX of a process, and the
 * bytes of all (functions_bytes), which the caller keeps below its bound by
 * emptying tables.
 * Cost: one hash lookup for each frame.
 */
#ifndef OTP_DAEMON_ENGINE_FUNCTIONS_H
#define OTP_DAEMON_ENGINE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/strpool.h"
#include "runtime/runtime.h"

#define FUNCTIONS_MAX	  65536
#define FUNCTION_RETRY_NS (60 * NSEC_PER_SEC) /* after a failure of the moment, as of a decoder that was late */
#define FUNCTION_OTHER_NS NSEC_PER_SEC	      /* after an answer that cannot be of the frame: what lies there is another one */

struct function { /* shared, reference counted */
	uint32_t refs;
	uint32_t start_line;
	uint64_t hash;
	size_t counted;	  /* its bytes in functions_bytes */
	struct str *name; /* owned, never NULL */
	struct str *file; /* owned, NULL: unknown */
	uint32_t nr_lines;
	bool has_columns, is_bounded; /* of struct runtime_function */
	struct runtime_line lines[];
};

enum function_state {
	FUNCTION_ASKED, /* the answer is pending */
	FUNCTION_KNOWN,
	FUNCTION_UNKNOWN, /* refused, or gone before it was read */
};

/* A sample, as functions see it: when it was taken; and which answers are too old for it. */
struct functions_when {
	uint64_t time_ns, epoch /* 0: not known */, after_ns;
	uint64_t bound; /* then, an epoch that is not later; 0: none is known */
	uint64_t ran_ns; /* when the runtime's code was first seen to run in the epoch; 0: not yet, or not known */
	bool begins; /* the epoch: what the sample has may be of the one before, as while it is being collected */
};

/*
 * Of a frame that is HINTED. An answer holds for all samples of its epoch, and of those up to the next answer that is the same.
 * Where epochs are not known, one that was found by the hint of a sample holds for that sample; until the next one that is the
 * same, for all samples in between; and for those with the same hint, as any other function does.
 */
struct function_hinted {
	uint64_t hint; /* of the last answer */
	uint64_t since_epoch, read_epoch; /* of the first and the last answer; 0: not known */
	uint64_t since_ns;    /* the function holds for samples from then on */
	uint64_t failed_ns;   /* no sample until then is asked for again */
	uint64_t asked_hint, asked_for_ns, asked_epoch; /* the last question: of which sample */
};

/* What a process' key and cookies mean. */
struct function_entry {
	struct function_entry *next; /* of the same hash */
	uint64_t key, cookie[RUNTIME_COOKIES];
	uint32_t state; /* enum function_state */
	uint64_t again_ns; /* UNKNOWN: when to ask again; UINT64_MAX: never */
	uint64_t asked_ns, read_ns; /* the last question; the answered one, after which it was read */
	struct function *function; /* of the last answer, while the next one is pending too; owned reference, NULL: unknown */
	struct function_hinted *hinted; /* owned; NULL: of a frame that is not */
};

struct functions {
	struct map by_hash; /* of struct function_entry, owned */
	uint32_t count;
	size_t bytes; /* of it and its functions, those that others share as well */
};

void functions_done(struct functions *t);
/* NULL: never met. Borrowed until functions_done. */
struct function_entry *functions_find(const struct functions *t, const struct runtime_frame *f);
struct function_entry *functions_add(struct functions *t, const struct runtime_frame *f); /* ASKED; NULL: too many, no memory */
/*
 * Whether to ask what f means: it was never met, was last read before after_ns, there was no room for the question
 * (-EBUSY), its answer failed a while ago, or it is not within the function that was read a while ago. It is ASKED then.
 * false also where there are too many, or no memory.
 */
bool functions_want(struct functions *t, const struct runtime_frame *f, uint64_t after_ns, uint64_t now_ns);
/*
 * Likewise of a frame that is HINTED; *question is f, with the sample's epoch. It is asked for as long as no answer holds for the
 * sample, and that is not one for which it failed.
 */
bool functions_want_hinted(struct functions *t, const struct runtime_frame *f, const struct functions_when *when,
			   uint64_t now_ns, struct runtime_frame *question);
bool function_hinted_is_pending(const struct function_entry *e, const struct runtime_frame *f,
				const struct functions_when *when);
const struct function *function_hinted(const struct function_entry *e, const struct runtime_frame *f,
				       const struct functions_when *when); /* NULL: unknown */
/* Whether an answer is pending that is needed; what it means, as read at after_ns or later, NULL: unknown. */
bool function_is_pending(const struct function_entry *e, uint64_t after_ns);
const struct function *function_after(const struct function_entry *e, uint64_t after_ns);
/* Whether a place of f may be in it. */
bool function_holds(const struct function *fn, const struct runtime_frame *f);
/* The answer to an entry of t. fn is borrowed for the call; NULL where err is not 0. */
void functions_settle(struct functions *t, struct function_entry *e, int err, const struct runtime_function *fn,
		      uint64_t now_ns);
/* The line of a place in it, and the column from 1 on; 0: unknown. */
uint32_t function_line(const struct function *fn, uint32_t position, uint32_t *ret_column);
size_t functions_bytes(void); /* of all tables and functions */

#endif
