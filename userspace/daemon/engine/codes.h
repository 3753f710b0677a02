/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of a process' code as its decoder described them, by address; regions
 * do not overlap. A region holds for samples between two readings that found the
 * same code, and for a while after the last one: what stayed for long stays, what
 * is young may be gone soon, so that the while is a share of its age
 * (CODES_TRUST_SHARE) and at most CODES_TRUST_NS. It is zero in a process whose
 * code is being replaced, and for fleeting code (RUNTIME_CODE_FLEETING).
 * Then it is to be read again. What is found there then, if it is other code,
 * holds from that reading on: samples taken in between are of neither. What is
 * found where nothing was known holds for the samples before it too, unless it is
 * fleeting, or code was found to be gone elsewhere not long before (CODES_ALERT_NS). If the place was read less than
 * CODES_TRUST_NS before and held no code, the code holds from that earlier reading on.
 * Of a runtime with epochs (struct runtime_ops) a region of any age is trusted for
 * CODES_TRUST_NS, but only for samples of the epochs between the first and the
 * last reading that found it; those of a later one have it read again. Code that
 * may go within an epoch (RUNTIME_CODE_MAY_GO) is trusted so for samples of the
 * epochs in which an earlier sample had run it; samples of another epoch that are
 * younger than the reading have it read again. A place where nothing was found is
 * trusted for the share of its age.
 * Code that stays for an epoch (RUNTIME_CODE_OF_EPOCH) is trusted for all of it once it was
 * read behind the collection that begins it, when the runtime's code was seen to
 * run, and for a sample that has it: what only a former return address leads to may
 * be dead, and other code in its place soon. A sample of that collection may have
 * what lay there before.
 * Where a process has several heaps, each has epochs of its own, and code holds for samples of its heap alone.
 * Code that lasts as long as the program (RUNTIME_CODE_LASTS) is read once.
 * Where a module may be loaded again where it was (RUNTIME_CODE_RECURS), equal code in two readings of one epoch was there
 * all the while; in those of two epochs, only if they are no further apart than the share of its age for which it would be
 * trusted. Else it holds for the epochs before and after, and not for those in between.
 * Of a runtime with stamps, a region holds for all samples of the last reading's stamp, and is not read again for them.
 * Of a runtime with epochs, code counts as replaced only if a sample of the epoch ran it. A decoder that was late or has
 * ended leaves what is known as it is. Code that changed during a reading (-ESTALE) is dropped, but does not count as gone.
 * Where nothing can be read any more, what is known is trusted unless code was found to
 * be gone: of a process that has ended for CODES_ENDED_NS, by a sample that has waited for
 * too long for CODES_TRUST_NS.
 *
 * Called by runtimes*.c, one thread. Bounds: CODES_MAX regions of a process; the
 * bytes of all (codes_bytes), which the caller keeps below its bound by emptying
 * tables. Times are boot time.
 * Cost: a search by halving for each frame.
 */
#ifndef OTP_DAEMON_ENGINE_CODES_H
#define OTP_DAEMON_ENGINE_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/strpool.h"
#include "runtime/code.h"

#define CODES_MAX      65536
#define CODES_TRUST_NS NSEC_PER_SEC
#define CODES_ENDED_NS (2 * CODES_TRUST_NS) /* the process may have ended before code was read again that was due to be */
#define CODES_TRUST_SHARE 8 /* code that was seen for 8 s is trusted for 1 s */
#define CODES_ALERT_NS (60 * NSEC_PER_SEC) /* after code was replaced, none is trusted for so long */

struct code_entry {
	uint64_t start, end; /* of a question: the address alone */
	uint64_t since_ns;   /* it holds for samples from then on */
	uint64_t since_epoch, seen_epoch; /* of its first and last reading; 0: of a runtime without epochs */
	uint64_t former_since, former_seen; /* likewise of equal code, before it may have been gone for a while */
	uint64_t ran_epoch; /* the latest in which a sample before a reading has it */
	uint64_t found_ns;   /* when it was first read, whatever was before */
	uint64_t seen_ns;    /* not before this it was last read; 0: never, an answer is pending */
	uint64_t asked_ns;   /* when the last question was put */
	uint64_t asked;	     /* how often */
	bool pending;	     /* an answer is */
	/* Owned, one block; NULL: unknown code, or the first answer is pending. */
	struct runtime_code *code;
	struct runtime_frame *functions;
	struct runtime_code_node *nodes;
	struct runtime_code_row *rows;
	uint32_t *more;
	struct str *name; /* owned; NULL: it has none */
};

struct codes {
	struct code_entry **at; /* sorted; owned, as its elements are */
	uint32_t count, cap;
	size_t bytes; /* of all that is in it */
	uint64_t replaced_ns; /* when code was last found in place of other code; 0: never */
	uint64_t gone_ns;     /* when code was last found to be there no more, replaced or not; 0: never */
	bool ended;	      /* the process has: there is nothing to read */
};

void codes_done(struct codes *t);
/* What lies at pc, borrowed until the next call; NULL: never asked. */
struct code_entry *codes_find(const struct codes *t, uint64_t pc);
/* When a sample was taken. */
struct codes_when {
	uint64_t time_ns;
	uint64_t epoch; /* 0: not known */
	uint64_t stamp; /* 0: not known */
	uint64_t bound; /* where the epoch is not known: what was first read later may be other code; 0: nor is that */
	uint64_t ran_ns; /* when the runtime's code was first seen to run in that epoch; 0: not yet, or not known */
	bool begins;	/* the epoch: it may be of the collection that ends the one before */
	bool waited;	/* for an answer, as long as it can */
};
/*
 * Whether to ask what lies at pc, for a sample: it is not known, or was not read since that time and its trust is over. It
 * is pending then; *ret is the question. false also where there are too many, no memory, or nothing to read.
 */
bool codes_want(struct codes *t, uint64_t pc, struct codes_when when, uint64_t now_ns, struct runtime_frame *ret);
/* The question could not be asked after all. */
void codes_unask(struct codes *t, uint64_t pc);
/* Of a sample: known, and it held at that time. */
bool codes_hold(const struct codes *t, const struct code_entry *e, struct codes_when when);
/* A sample has it as a frame, and codes_hold says so. */
void codes_run(struct code_entry *e, struct codes_when when);
/* Whether code of the process was replaced not long before a sample. */
bool codes_are_alert(const struct codes *t, uint64_t time_ns);
/*
 * The answer to a question for pc, read between the question and now_ns. c is borrowed for the call; NULL where err is not
 * 0, which is -EALREADY for code that is still there, -ESRCH where the process has ended.
 */
void codes_settle(struct codes *t, uint64_t pc, int err, const struct runtime_code_made *c, uint64_t now_ns);
size_t codes_bytes(void); /* of all tables */

#endif
