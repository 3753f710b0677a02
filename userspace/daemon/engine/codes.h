/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of a process' code as its decoder described them, by address; regions
 * do not overlap. A region holds for samples between two readings that found the
 * same code, and for CODES_TRUST_NS after the last one, or not at all in a
 * process whose code is being replaced, or if it is code that may be soon
 * (RUNTIME_CODE_FLEETING); then it is to be read again. What is
 * found there then, if it is other code, holds from that reading on: samples
 * taken in between are of neither. Of a runtime with epochs (struct runtime_ops)
 * a region holds besides only for samples of the epochs between the first and the
 * last reading that found it; those of a later one have it read again.
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
#define CODES_ALERT_NS (60 * NSEC_PER_SEC) /* after code was replaced, none is trusted for so long */

struct code_entry {
	uint64_t start, end; /* of a question: the address alone */
	uint64_t since_ns;   /* it holds for samples from then on */
	uint64_t since_epoch, seen_epoch; /* of its first and last reading; 0: of a runtime without epochs */
	uint64_t seen_ns;    /* when it was last read; 0: never, an answer is pending */
	uint64_t asked;	     /* how often */
	bool pending;	     /* an answer is */
	/* Owned, one block; NULL: unknown code, or the first answer is pending. */
	struct runtime_code *code;
	struct runtime_frame *functions;
	struct runtime_code_node *nodes;
	struct runtime_code_row *rows;
	struct str *name; /* owned; NULL: it has none */
};

struct codes {
	struct code_entry **at; /* sorted; owned, as its elements are */
	uint32_t count, cap;
	size_t bytes; /* of all that is in it */
	uint64_t replaced_ns; /* when code was last found in place of other code; 0: never */
};

void codes_done(struct codes *t);
/* What lies at pc, borrowed until the next call; NULL: never asked. */
struct code_entry *codes_find(const struct codes *t, uint64_t pc);
/* When a sample was taken. */
struct codes_when {
	uint64_t time_ns;
	uint64_t epoch; /* 0: not known */
};
/*
 * Whether to ask what lies at pc, for a sample: it is not known, or was not read since that time and its trust is over. It
 * is pending then; *ret is the question. false also where there are too many, or no memory.
 */
bool codes_want(struct codes *t, uint64_t pc, struct codes_when when, struct runtime_frame *ret);
/* The question could not be asked after all. */
void codes_unask(struct codes *t, uint64_t pc);
/* Of a sample: known, and it held at that time. */
bool codes_hold(const struct codes *t, const struct code_entry *e, struct codes_when when);
/* Whether code of the process was replaced not long before a sample. */
bool codes_are_alert(const struct codes *t, uint64_t time_ns);
/*
 * The answer to a question for pc, read at now_ns. c is borrowed for the call; NULL where err is not 0, which is -EALREADY
 * for code that is still there.
 */
void codes_settle(struct codes *t, uint64_t pc, int err, const struct runtime_code_made *c, uint64_t now_ns);
size_t codes_bytes(void); /* of all tables */

#endif
