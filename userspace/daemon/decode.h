/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine and a decoder say to each other over a socket of their own,
 * as messages of daemon/ipc.h. A decoder serves one process; it finds the
 * runtime itself, in the ELF file that the engine passes and the monitor's
 * ticket vouches for.
 *
 *   engine                                decoder
 *   ATTACH, the file        ->
 *                           <-            READ ...; ATTACHED
 *   DECODE, up to 64 frames ->
 *                           <-            READ ...; FUNCTION, for each frame in order;
 *                                         CODE for one with RUNTIME_CODE
 *
 * One question at a time: ATTACH first, then DECODE, each after the answers to
 * the one before. READ is sent only if ATTACH requested it, before the answer
 * that it served.
 *
 * Called by decoders, the engine, tests; pure. Either side may be taken over,
 * so each checks every length (-EBADMSG): a sound peer never sends such a
 * message. Both are one program: there are no versions.
 */
#ifndef OTP_DAEMON_DECODE_H
#define OTP_DAEMON_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/ipc.h"
#include "daemon/ticket.h"
#include "runtime/runtime.h"

#define DECODE_FRAMES 64    /* of one DECODE */
#define DECODE_BYTES  49152 /* of one READ; more is sent in pieces */

/* HOST_OPEN_DECODER's answer beside the socket. */
struct decode_opened {
	uint64_t id; /* of DECODER_END */
};

/* What the opener answers to a decoder, beside the memory: where the file is mapped. */
struct decode_mapping {
	uint64_t start, offset; /* the address where this offset of the file is */
};

struct decode_attach {
	uint32_t reads, found;
	uint64_t thread; /* of struct runtime_file */
	struct runtime_seen seen;
	struct runtime_attached as; /* if found: what a former decoder of the process has (found_lasts in runtime.h) */
};
struct decode_attached {
	int32_t err;
	uint32_t reserved;
	uint64_t bias; /* of the file */
	struct runtime_attached attached; /* err 0 */
	char why[RUNTIME_WHY_MAX];	  /* err not 0; may be empty */
};
struct decode_batch { uint32_t count, reserved; /* struct runtime_frame follow */ };
/* Then nr_lines struct runtime_line, name, file. */
struct decode_function {
	int32_t err; /* not 0: nothing else counts */
	uint32_t index; /* of the frame in its batch */
	uint32_t start_line, nr_lines;
	uint32_t name_len, file_len;
	uint16_t has_columns, is_bounded;
	uint32_t line_file; /* enum runtime_line_file */
	uint64_t epoch;
};
/* Then functions, nodes, rows, more. */
struct decode_code {
	int32_t err; /* not 0: nothing else counts */
	uint32_t index; /* of the question in its batch */
	struct runtime_code code;
};
/* Of the runtime's file, and of one beside a mapped one, addr is an offset. */
enum decode_source { DECODE_MEMORY, DECODE_FILE, DECODE_BESIDE, DECODE_SOURCES };
struct decode_read { uint64_t addr; uint32_t len, source; /* the bytes follow */ };

#define DECODE_FUNCTION_MAX                                                                                      \
	(sizeof(struct decode_function) + RUNTIME_LINES_MAX * sizeof(struct runtime_line) + RUNTIME_NAME_MAX + \
	 RUNTIME_PATH_MAX)
_Static_assert(DECODE_FUNCTION_MAX <= IPC_DATA_MAX, "a function fits a message");
_Static_assert(sizeof(struct decode_code) + RUNTIME_CODE_FUNCTIONS * sizeof(struct runtime_frame) +
			       RUNTIME_CODE_NODES * sizeof(struct runtime_code_node) +
			       RUNTIME_CODE_ROWS * sizeof(struct runtime_code_row) +
			       RUNTIME_CODE_MORE * sizeof(uint32_t) <= IPC_DATA_MAX,
	       "so does a region of code");
_Static_assert(sizeof(struct decode_batch) + DECODE_FRAMES * sizeof(struct runtime_frame) <= IPC_DATA_MAX,
	       "so does a batch");
_Static_assert(sizeof(struct decode_read) + DECODE_BYTES <= IPC_DATA_MAX, "and a read");

/*
 * Messages as bytes: each _pack returns the length of the data in to, and each
 * _unpack returns 0 or -EBADMSG, where nothing is filled in.
 */
size_t decode_attached_pack(int err, uint64_t bias, const struct runtime_attached *a, const char *why,
			    uint8_t to[IPC_DATA_MAX]);
/* why always ends; a 0 error comes with a sound runtime_attached. */
int decode_attached_unpack(const struct ipc_message *m, struct decode_attached *ret);
size_t decode_batch_pack(const struct runtime_frame *frames, uint32_t count, uint8_t to[IPC_DATA_MAX]);
/* *ret is borrowed from m. */
int decode_batch_unpack(const struct ipc_message *m, const struct runtime_frame **ret, uint32_t *ret_count);
/* Of err not 0, f is not read. Texts are cut to their sizes, lines to RUNTIME_LINES_MAX. */
size_t decode_function_pack(int err, uint32_t index, const struct runtime_function *f, uint8_t to[IPC_DATA_MAX]);
/* Texts end, and lines are sorted by position; of *ret no more is written than its lines. */
int decode_function_unpack(const struct ipc_message *m, uint32_t index, int *ret_err, struct runtime_function *ret);
/* Of err not 0, c is not read. */
size_t decode_code_pack(int err, uint32_t index, const struct runtime_code_made *c, uint8_t to[IPC_DATA_MAX]);
/* Sound, and around pc; of *ret no more is written than its arrays count. */
int decode_code_unpack(const struct ipc_message *m, uint32_t index, uint64_t pc, int *ret_err,
		       struct runtime_code_made *ret);
size_t decode_read_pack(enum decode_source source, uint64_t addr, const void *bytes, uint32_t len,
			uint8_t to[IPC_DATA_MAX]);
/* *ret_bytes is borrowed from m. */
int decode_read_unpack(const struct ipc_message *m, struct decode_read *ret, const uint8_t **ret_bytes);

/*
 * The decoding itself, in a decoder process and in a replay: a new budget of
 * reads, then the runtime's own function. runtime is its index in runtime_list.
 */
int decode_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX]);
int decode_frame(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		 struct runtime_function *ret);
/* q: a question with RUNTIME_CODE. */
int decode_code(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *q,
		struct runtime_code_made *ret);
/* runtime_of_file and runtime_list, or what a test has put in their place. */
int decode_runtime_of_file(struct binary *b);
const struct runtime_ops *decode_runtime(uint32_t index); /* NULL: none */
/* Other runtimes than runtime_of_file's and runtime_list, for tests; NULL: those. */
typedef int decode_find_fn(struct binary *b);
void decode_set_runtimes(decode_find_fn *find, const struct runtime_ops *const *list);
/* The bias of a file that has this mapping; -EFAULT: no segment of it covers the mapping's beginning. */
int decode_bias(const struct binary *b, const struct decode_mapping *at, uint64_t *ret);

#endif
