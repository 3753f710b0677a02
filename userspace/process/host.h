/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of the engine about the host that it profiles. The engine opens
 * nothing itself: live, the monitor passes the questions to its disposable
 * opener; in a replay, the capture answers them.
 *
 * Called by process/ and symbol/ in the engine, one thread. Never blocks: the
 * answer arrives later, from the engine's main loop, or during the call (in a
 * replay), so callers must expect both.
 * Every question is answered exactly once, at the latest after the opener's
 * deadline (-ETIMEDOUT), or when the host is freed (-ECANCELED).
 */
#ifndef OTP_PROCESS_HOST_H
#define OTP_PROCESS_HOST_H

#include <stddef.h>
#include <stdint.h>

enum host_ask {
	HOST_OPEN_MAPPED = 1, /* the program or jitdump mapped executable at [start, end) of pid -> fd */
	HOST_READ_MAPS,       /* /proc/PID/maps, code only -> data */
	HOST_READ_IDENTITY,   /* struct host_identity_text -> data */
	/* 4 was an answer of captures by older versions: it stays unused. */
	HOST_SCAN = 5,        /* all processes, or if len is set the first len above pid: struct host_scan_entry and
			       * text each -> fd of a sealed memfd */
	HOST_OPEN_INDEX,      /* the address index of the file elf_fd, which pid runs as path -> fd */
	HOST_OPEN_PERF_MAP,   /* names of the code that pid generates: /tmp/perf-PID.map in its root -> fd */
	HOST_OPEN_DEBUG,      /* asked by the indexer: the ELF file path in pid's root -> fd */
	HOST_READ_CONTAINERS, /* asked by the monitor: names of containers -> data; path: their ids, concatenated,
			       * or "" for all that have a name */
	HOST_OPEN_DECODER,    /* a decoder of pid, which has the ticket's file mapped executable at [start, end) -> fd
			       * of a socket, struct decode_opened (daemon/decode.h) */
	HOST_OPEN_BESIDE,     /* asked by the monitor for a decoder: the portable PDB path, one name
			       * (process/beside.h), beside the file that pid has mapped at start -> fd */
};

#define HOST_PID 1 /* the host's first process, whose root is the host's */

/* Bounds of an answer: longer text is cut, and the cut is visible by its length. */
#define HOST_MAPS_MAX     (4u << 20)
#define HOST_IDENTITY_MAX 65536u
#define HOST_PATH_MAX     4096u
/*
 * Answer to HOST_READ_CONTAINERS: for each container with a name its id of
 * HOST_CONTAINER_ID hex digits, then the name (printable UTF-8) and a NUL.
 */
#define HOST_CONTAINER_ID       64u
#define HOST_CONTAINER_NAME_MAX 256u /* with the NUL */
#define HOST_CONTAINERS_MAX     (4u << 20)

/* What recognises a file that the host opened in later questions about it; opaque. */
struct host_ticket {
	uint64_t opaque[18];
};

struct host_request {
	uint32_t kind; /* enum host_ask */
	uint32_t pid;
	uint64_t pid_start_ns; /* when pid started, boot time: -ESRCH where another process has it; 0: unknown */
	int elf_fd;     /* HOST_OPEN_INDEX: borrowed until the answer; -1: in a replay */
	const struct host_ticket *ticket; /* HOST_OPEN_INDEX: of elf_fd; HOST_OPEN_DECODER; borrowed for the call */
	uint64_t start; /* HOST_OPEN_MAPPED, HOST_OPEN_DECODER: mapping */
	uint64_t end;   /* HOST_OPEN_INDEX: both together are the file's htlhash */
	uint64_t ino; /* required of the opened file; 0: unknown */
	uint32_t len;           /* HOST_SCAN: number of processes, 0: all; HOST_OPEN_DEBUG: enum index_root; else 0 */
	uint64_t group; /* whose questions share a turn, as a process' cgroup; 0: nobody's */
	uint32_t alternate_pid; /* living process of the same container, 0: none */
	const char *path;       /* HOST_OPEN_MAPPED: as the target sees it; borrowed for the call */
};

/*
 * err: 0 or negative errno (-ESRCH: the process ended, -ENOENT, -EPERM: not a
 * regular file, or none that may leave the opener, -ENOEXEC: mapped as code, but
 * no program, -EACCES: a file found by its name that the process may not run,
 * -EHOSTDOWN: an opener hung on its file system, or for its user, not long ago,
 * -ETIMEDOUT). fd: owned by the callee, -1 if none. data: borrowed for the call;
 * with a descriptor, the file's struct host_ticket. A replay answers
 * HOST_OPEN_MAPPED and HOST_OPEN_INDEX with a struct binary_replay as data in
 * place of the descriptor, and HOST_OPEN_DECODER with a struct decoders_replay.
 */
typedef void host_answer_fn(void *ctx, int err, int fd, const void *data, size_t len);

struct host;
struct host_ops {
	/* 0; -EBUSY when too many questions are pending (the caller repeats it later). */
	int (*ask)(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx);
	/* Drops the answers for ctx; afterwards fn is not called with it. */
	void (*cancel)(struct host *h, void *ctx);
};

struct host {
	const struct host_ops *ops;
};

static inline int host_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	return h->ops->ask(h, req, fn, ctx);
}

static inline void host_cancel(struct host *h, void *ctx)
{
	h->ops->cancel(h, ctx);
}

/*
 * Answer to HOST_READ_IDENTITY: the texts in the order of enum host_text, each
 * of its length in len. In captures of older versions the last one is missing,
 * and its length is 0.
 */
enum host_text {
	HOST_TEXT_EXE,     /* readlink of /proc/PID/exe */
	HOST_TEXT_CMDLINE, /* NUL-separated */
	HOST_TEXT_CGROUP,  /* /proc/PID/cgroup as the host's cgroup namespace sees it */
	HOST_TEXT_ENVIRON, /* only the variables that name a service (opener_text.c), NUL-separated */
	HOST_TEXT_STATUS,  /* /proc/PID/status */
	HOST_TEXT_CONTAINER, /* name that a runtime keeps for the container of the cgroup */
	HOST_TEXT_NR,
};

struct host_identity_text {
	uint64_t start_ns; /* boot time, cut to clock ticks as in /proc/PID/stat */
	uint32_t ppid;
	uint32_t len[HOST_TEXT_NR];
	uint32_t reserved; /* the texts follow without padding: sizeof and offset are equal */
	char text[];
};

_Static_assert(offsetof(struct host_identity_text, text) == sizeof(struct host_identity_text),
	       "padding before the texts");

/* HOST_SCAN: a sequence of these, 8-byte aligned; then identity, then maps text. */
struct host_scan_entry {
	uint32_t pid;
	uint32_t identity_len; /* struct host_identity_text and its texts */
	uint32_t maps_len;
	uint32_t reserved;
};

#endif
