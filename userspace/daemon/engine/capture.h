/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture: the engine's input, so that a replay can run without kernel and
 * without root. It holds samples, side-band records, the monitor's answers, the
 * file pages that were read, the kernel symbols of the samples, and what decoders
 * read of the memory of interpreters, which is not scrubbed: names and line tables.
 *
 * Written by the engine, one thread, to a descriptor that the monitor opened
 * (mode 0600). Stack words and registers that point neither into code nor into
 * the stack itself are zeroed: stacks hold secrets. A write that fails ends
 * the capture; sampling continues.
 *
 * Format: struct capture_head, then struct capture_record and its payload,
 * padded to 8 bytes, until the end of the file. Little-endian. A file cut
 * anywhere is a valid, shorter capture. Readers skip unknown types.
 */
#ifndef OTP_DAEMON_ENGINE_CAPTURE_H
#define OTP_DAEMON_ENGINE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/origin.h"
#include "daemon/engine/decoders.h"
#include "daemon/engine/sample.h"
#include "process/host.h"
#include "process/space.h"
#include "symbol/symbol.h"

#define CAPTURE_MAGIC   "OTPCAP01"
#define CAPTURE_RECORD_MAX (80u << 20)

struct capture_head {
	char magic[8];
	uint32_t abi;  /* OTP_ABI_VERSION */
	uint32_t reserved;
	uint64_t period_ns;
	uint64_t unix_offset_ns; /* Unix time - boot time at the start */
};

enum capture_type {
	CAPTURE_BATCH = 1, /* struct capture_batch: a drain begins */
	CAPTURE_SAMPLE,    /* a sample of the ring, chunks joined */
	CAPTURE_EVENT,     /* a perf side-band record */
	CAPTURE_ANSWER,    /* struct capture_answer, path, data */
	CAPTURE_FILE,      /* struct capture_file, path: a file of an answer */
	CAPTURE_PAGE,      /* struct capture_page, bytes of a file */
	CAPTURE_SYMBOL,    /* struct capture_symbol, name NUL module NUL */
	CAPTURE_FLUSH,     /* struct capture_batch: an interval ended */
	CAPTURE_VDSO,      /* the image of the host's processes */
	CAPTURE_PERIOD,    /* struct capture_period: of the CPU clock's samples from here on */
	CAPTURE_ORIGIN,    /* struct capture_origin: from here on; beside the CPU clock, or that it is not sampled */
	CAPTURE_DECODED,   /* struct capture_decoded; struct capture_read and bytes, padded to 8, each */
};

struct capture_record {
	uint32_t type;
	uint32_t len; /* of the payload, without padding */
};

struct capture_batch { uint64_t now_ns; };
struct capture_period { uint64_t period_ns; };
struct capture_origin { uint32_t slot, origin, sampled, reserved; uint64_t period; };
struct capture_answer {
	uint32_t kind, pid;
	uint64_t start, end;
	int32_t err;
	uint32_t path_len;
	uint32_t file; /* HOST_OPEN_MAPPED: number of the CAPTURE_FILE before it */
	uint32_t data_len;
};
struct capture_file { uint32_t file, path_len; uint64_t dev, ino, size, ctime_ns; };
struct capture_page { uint64_t dev, ino, offset; uint32_t len, reserved; };
/* A question to a decoder, its error, and what was read for it. */
struct capture_decoded {
	uint32_t pid;
	int32_t err;
	uint64_t start_ns, exec_id;
	uint64_t dev, ino; /* of the runtime's file */
	uint64_t bias, thread; /* of the file; attach only */
	uint32_t attach;   /* 1: no frame */
	uint32_t reads_len;
	struct runtime_frame frame;
};
struct capture_read { uint64_t addr; uint32_t len, reserved; };
/* Addresses from here on, which no process has: offsets in the file beside a mapped one that the function needed. */
#define CAPTURE_BESIDE (1ULL << 63)
struct capture_symbol { uint64_t start, module_start; uint32_t name_len, module_len; };

struct capture;
int capture_new(int fd, const struct origins *origins, struct capture **ret); /* owns fd, also on failure */
struct capture *capture_free(struct capture *c); /* writes the buffer; NULL */

void capture_batch(struct capture *c, uint64_t now_ns);
void capture_flush(struct capture *c, uint64_t now_ns);
void capture_origins(struct capture *c, const struct origins *origins); /* after a flush */
void capture_event(struct capture *c, const void *record, size_t len);
/* What runtimes read of a sample, beside addresses of code and stack: kept as it is. */
struct capture_kept {
	const uint64_t *words; /* addresses in the stack; borrowed */
	uint32_t nr;
	uint64_t regs; /* bit per register */
};
void capture_sample(struct capture *c, const struct sample *s, const struct space *space,
		    const struct kernel_symbols *kernel, const struct capture_kept *kept);
/* A host_tap_fn. */
void capture_host_answer(void *capture, const struct host_request *req, int err, int fd, const void *data, size_t len);
/* Collects what a decoder has read, for capture_decoded. */
void capture_add_read(struct buf *to, uint64_t addr, const void *bytes, uint32_t len);
/* frame NULL: ATTACH. */
void capture_decoded(struct capture *c, const struct decoders_target *t, const struct runtime_frame *frame, int err,
		     uint64_t bias, const void *reads, size_t len);
/* A binary_page_hook_fn. */
void capture_file_page(void *capture, const struct binary *b, uint64_t offset, const void *data, size_t len);

#endif
