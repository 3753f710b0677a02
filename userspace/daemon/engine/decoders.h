/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoders of processes that run a runtime, as the engine sees them: one
 * object for each process (its exec identity) and runtime's file. It is asked
 * for, attached, and then decodes frames; behind it a decoder process is started
 * when there is something to ask, and ended when there is not. In a replay the
 * capture's reads are decoded in process, and answers arrive during the call.
 *
 * Called by the pipeline and the engine's loop, one thread. Nothing blocks.
 * Answers are calls of struct decoders_ops, in decoders_read or decoders_run,
 * or, in a replay, during decoders_attach and decoders_decode. In such a call
 * decoders may be asked for more frames, and be dropped, the one at hand too.
 * Processes share the target's file by path and build-id: where one maps another
 * such file, below another root or replaced since, that is opened for it.
 * Starting a process costs some milliseconds of CPU time. For decoders that were attached before only a few start a second
 * (repeats); while one of these waits for its turn, idle processes are kept for further questions.
 * Bounds: DECODERS_MAX objects, of one group half of them; DECODERS_LIVE
 * processes, of one group half of them, or all but one while no other group
 * waits; DECODER_QUEUE frames wait in one object.
 * A decoder that does not answer in time, or dies, loses the first frame that
 * it has not answered (-ETIMEDOUT, -EIO); the others are asked of its successor.
 */
#ifndef OTP_DAEMON_ENGINE_DECODERS_H
#define OTP_DAEMON_ENGINE_DECODERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/binary.h"
#include "process/host.h"
#include "runtime/runtime.h"

#define DECODERS_MAX  1024
#define DECODERS_LIVE 4
#define DECODER_QUEUE 1024

struct capture;
struct decoder;
struct decoders;

struct decoders_ops {
	/*
	 * Once for each decoder, unless it was dropped before. 0: a is borrowed for the call. Else it is over with this
	 * decoder: -ENOTSUP, -ENOENT as of attach; -ESRCH: the process is gone; -EPERM, -ESTALE: the file is not mapped
	 * there; others: it failed again and again. why may be empty. While the runtime has not started (-EAGAIN), the
	 * decoder waits, and asks again. A decoder that was attached and is over since, as its process is gone or its
	 * successors fail, says so by a second call with the error: it takes no more frames.
	 */
	void (*attached)(void *ctx, struct decoder *d, int err, const struct runtime_attached *a, const char *why);
	/* For each frame that decoders_decode took, in any order. f, fn: borrowed for the call; fn NULL where err is not 0. */
	void (*function)(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
			 const struct runtime_function *fn);
	/* For each question with RUNTIME_CODE, likewise: f->key is the address. NULL: none is asked. */
	void (*code)(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
		     const struct runtime_code_made *c);
};

struct decoders_config {
	struct host *host;	 /* borrowed */
	struct capture *capture; /* borrowed; NULL: none. With one, what decoders read is written to it */
	int epoll;		 /* for the sockets of decoders; -1: in a replay */
	uint32_t repeats;	 /* processes a second for those that were attached before; 0: any number */
	/* The decoder process of this id is of no use any more; NULL: in a replay. */
	void (*end)(void *ctx, uint64_t id);
	void *ctx;
};

int decoders_new(const struct decoders_config *cfg, struct decoders **ret);
struct decoders *decoders_free(struct decoders *ds); /* drops all; NULL */
void decoders_listen(struct decoders *ds, const struct decoders_ops *ops, void *ctx); /* before the first attach */

/* Whose runtime. */
struct decoders_target {
	uint32_t pid;
	uint64_t start_ns, exec_id; /* of the process */
	uint64_t group;		    /* whose decoders share their turns, as its cgroup */
	struct binary *binary;	    /* the runtime's file; the decoder takes a reference of its own */
	uint64_t start, end;	    /* of an executable mapping of it */
	uint64_t thread;	    /* of struct runtime_file */
	struct runtime_seen seen;
};

/*
 * owner: what the caller keeps with it. NULL: there are too many, there is no
 * memory, or a call has dropped it: in a replay ops->attached is called before
 * this returns.
 */
struct decoder *decoders_attach(struct decoders *ds, const struct decoders_target *t, void *owner);
bool decoders_has_room(const struct decoders *ds, uint64_t group); /* for one more of this group */
bool decoders_group_is_full(const struct decoders *ds, uint64_t group);
struct decoder *decoders_drop(struct decoder *d); /* no more calls for it; NULL */
/* What was seen since: one that has not attached looks at it when it is tried again. */
void decoder_set_seen(struct decoder *d, const struct runtime_seen *seen);
void *decoder_owner(const struct decoder *d);
const struct decoders_target *decoder_target(const struct decoder *d); /* borrowed */
bool decoder_is_attached(const struct decoder *d);
bool decoder_is_replayed(const struct decoder *d); /* its answers come during the call that asks */
/*
 * Takes the first of n frames, or questions with RUNTIME_CODE; returns how many: fewer where its queue is full, 0 until it
 * is attached.
 */
size_t decoders_decode(struct decoder *d, const struct runtime_frame *frames, size_t n);

/* Answers; when a socket of epoll is readable. */
void decoders_read(struct decoders *ds);
/* Starts and ends decoder processes; every turn of the loop. */
void decoders_run(struct decoders *ds, uint64_t now_ns);
uint64_t decoders_next_ns(const struct decoders *ds); /* when it has something to do; UINT64_MAX */

/* For status and explain; free-running. */
struct decoders_figures {
	uint32_t decoders, live, waiting; /* now: objects, processes, objects that wait for one */
	uint64_t started;		  /* processes that answered ATTACH or were to */
	uint64_t late, died;		  /* processes that did not answer in time; that ended in a question */
	uint64_t functions, failed;	  /* answers */
	uint64_t line_files[RUNTIME_LINE_FILES_NR]; /* that functions were the first to need */
};
void decoders_count(const struct decoders *ds, struct decoders_figures *ret);

/*
 * A replay's answer to HOST_OPEN_DECODER, in place of the descriptor: what was
 * read for a question, of which frame is NULL for ATTACH. 0: m is ready, until
 * the next call, and bias and thread of *ret are filled in for ATTACH; -ENOENT: it was never asked.
 */
struct decoders_replay {
	int (*reads)(void *ctx, const struct decoders_target *t, const struct runtime_frame *frame, struct memory **m,
		     struct runtime_file *ret);
	void *ctx;
};

#endif
