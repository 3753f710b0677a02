/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the engine's decoders, and what their files provide for each
 * other. Only decoders*.c and their test include it; one thread.
 */
#ifndef OTP_DAEMON_ENGINE_DECODERS_STATE_H
#define OTP_DAEMON_ENGINE_DECODERS_STATE_H

#include "base/buf.h"
#include "daemon/decode.h"
#include "daemon/engine/decoders.h"

#define DECODER_READS_MAX (2 * MEMORY_BYTES_MAX) /* of one question, heads included */

enum decoder_state {
	DECODER_AWAY,	   /* no process */
	DECODER_OPENING,   /* requested from the host, or its own file is */
	DECODER_ATTACHING, /* ATTACH is sent */
	DECODER_READY,	   /* attached, and asked nothing */
	DECODER_ASKED,	   /* a batch is sent */
};

struct decoder {
	struct decoder *next, **at;
	struct decoders *ds;
	struct decoders_target target;
	struct binary *own; /* the target's file as this process has it, where that is another one of the same build; owned */
	void *owner;
	enum decoder_state state;
	bool reported;	/* ops->attached was called */
	bool attached;	/* with 0 */
	bool doubted;	/* its runtime was refused once */
	int over;	/* the error with which it was given up; 0: it was not */
	uint64_t id;	/* of the process */
	int sock;	/* -1: none */
	uint64_t opened_ns; /* when its process was */
	uint64_t began_ns, deadline_ns, used_ns, left_ns, retry_ns, pause_ns;
	uint32_t failures;
	/* Those that wait, from first to count; the first sent ones are in the batch that is out. */
	struct runtime_frame *frames;
	uint32_t first, count, sent;
	uint32_t answered; /* of the batch that is out */
	uint64_t batches;
	struct buf reads; /* for the question that is out, as a capture has them */
	const struct decoders_replay *replay; /* borrowed; NULL: live */
	bool replaying;
	struct runtime_attached as; /* if attached */
};

/* Whether a decoder outlives a call of its owner, who may drop it. On the stack of who calls. */
struct decoders_call {
	struct decoder *d; /* NULL: it was dropped */
	struct decoders_call *outer;
};

struct decoders {
	struct decoders_config cfg;
	const struct decoders_ops *ops;
	void *ctx;
	struct decoder *first, *last;
	uint32_t count;
	struct decoder *process[DECODERS_LIVE]; /* that have one, or will */
	uint32_t live;
	struct decoders_call *calls; /* under way, the innermost first */
	struct decoder *turn;	 /* the next one of decoders_run */
	uint64_t next_ns;
	/* Each repeat moves it on by its part of a second. None starts while it is more than REPEATS_AHEAD parts ahead of now. */
	uint64_t paid_ns;
	struct decoders_figures figures;
	struct ipc_message message;
	struct runtime_function function;
	struct runtime_code_made code;
	uint8_t out[IPC_DATA_MAX] __attribute__((aligned(8)));
};

/* decoders.c. Those that return bool: whether the decoder is still there after the call of its owner. */
void decoders_start(struct decoder *d, uint64_t now); /* if there is a place for it */
bool decoder_report(struct decoder *d, int err, const struct runtime_attached *a, const char *why);
bool decoder_answer(struct decoder *d, int err); /* the first frame: with function or code of struct decoders */
bool decoder_is_final(int err); /* no later try changes it */
bool decoder_is_old(const struct decoder *d, uint64_t now); /* it ends before its next question */
/* Ends its process for an error of ATTACH, or of its start; now or later another one is tried. May drop it. */
void decoder_failed(struct decoder *d, int err, const char *why, uint64_t now);
/* The process did not answer, or broke the rules. May drop it. */
void decoder_broke(struct decoder *d, int err, uint64_t now);

/* decoders_live.c */
void decoder_open(struct decoder *d, uint64_t now);
void decoder_close(struct decoder *d);
void decoder_send_batch(struct decoder *d, uint64_t now); /* of a READY one with frames; may drop it */

/* decoders_replay.c */
void decoder_replay_attach(struct decoder *d, const struct decoders_replay *r);
void decoder_replay_frames(struct decoder *d);

#endif
