/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one process, as a decoder reads it: hostile, changing, and
 * perhaps never answering.
 *
 * Called by the decoders of runtimes, in a decoder process, in a replay, and in
 * tests; one thread. Plain and synchronous: what can hang for ever is read in a
 * process that may be killed. So is a file that lies beside one which the process
 * has mapped: a runtime may keep what belongs to its code there.
 * Bounds: every read counts against a budget of bytes and of reads for one
 * question, so that no list in that memory keeps a decoder busy; one that is
 * gathered counts as itself, and may read MEMORY_LINE bytes more. What is read
 * beside the budget has a bound where that is done.
 */
#ifndef OTP_RUNTIME_MEMORY_H
#define OTP_RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_READS_MAX 16384	     /* of one question */
#define MEMORY_BYTES_MAX (4u << 20)

#define MEMORY_LINE  256u
#define MEMORY_LINES 32u

/* What lies around small reads, so that their neighbours need none of their own. */
struct memory_lines {
	uint64_t at[MEMORY_LINES]; /* UINT64_MAX: empty */
	uint8_t byte[MEMORY_LINES][MEMORY_LINE];
};

struct memory {
	/* len bytes or none: 0, -EFAULT. */
	int (*read)(struct memory *m, uint64_t addr, void *to, size_t len);
	/* As memory_beside; NULL: there are no files. */
	int (*beside)(struct memory *m, uint64_t addr, const char *name, int *ret_fd);
	uint32_t reads; /* since memory_question */
	size_t bytes;
	bool gathers;
	struct memory_lines lines; /* while it gathers */
};

void memory_question(struct memory *m); /* a new budget */
int memory_read(struct memory *m, uint64_t addr, void *to, size_t len); /* 0, -EFAULT, -E2BIG: over the budget */
/*
 * How much of the budget is spent, and back to that: for what a caller reads once and remembers, within a bound of its own. An
 * answer that lacks it may hold for long, and the next question would only begin with it anew.
 */
struct memory_spent { uint32_t reads; size_t bytes; };
struct memory_spent memory_spent(const struct memory *m);
void memory_unspend(struct memory *m, struct memory_spent to);
/*
 * Until memory_gather_done or the next question, small reads may be answered by what was read around earlier ones: a
 * field costs some 10 ns in place of a system call's 600. Only for what is believed where an epoch is equal before and
 * after; that one is read outside, as is all that is read a second time to see whether it changed.
 */
void memory_gather(struct memory *m);
void memory_gather_done(struct memory *m);
int memory_u64(struct memory *m, uint64_t addr, uint64_t *ret);
int memory_u32(struct memory *m, uint64_t addr, uint32_t *ret);
int memory_u8(struct memory *m, uint64_t addr, uint8_t *ret);
/* A string of at most size - 1 bytes, its NUL added; longer ones are cut. Reads to the end of a page at a time. */
int memory_string(struct memory *m, uint64_t addr, char *to, size_t size);

/*
 * The file of this name (process/beside.h) beside the one that is mapped at addr, for reading, owned by the caller;
 * hostile. Waits for a second at most. -ENOENT: there is none, or none is mapped; -EACCES, -EPERM, -ELOOP, -EXDEV: it
 * is refused; -EFBIG; -EBADMSG: of another kind; -E2BIG: too many were asked for; -ENOSYS: there are no files; others: it
 * did not come.
 */
int memory_beside(struct memory *m, uint64_t addr, const char *name, int *ret_fd);

/* Of another process, by a descriptor of its /proc/PID/mem, borrowed. */
struct memory_fd {
	struct memory memory; /* first */
	int fd;
};
void memory_fd_init(struct memory_fd *m, int fd);

#endif
