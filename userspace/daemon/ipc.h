/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed messages with passed descriptors between the processes, over
 * SOCK_SEQPACKET socket pairs: one send, one message.
 *
 * Called by every process role, one thread each. A message is a fixed head
 * and up to IPC_DATA_MAX bytes; larger data is sent as a sealed memfd.
 * Receivers check lengths and descriptor counts; for a message that breaks the
 * rules they return -EBADMSG, and the peer that sent it is treated as dead.
 */
#ifndef OTP_DAEMON_IPC_H
#define OTP_DAEMON_IPC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "base/origin.h"
#include "daemon/blame.h"
#include "daemon/fetch.h"
#include "daemon/ticket.h"
#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"
#include "process/selection.h"

#define IPC_DATA_MAX	  65536u
#define IPC_FDS_MAX	  4
#define IPC_EXPLAINED_MAX (1u << 20) /* bytes of the memfd of EXPLAINED */

/* X(number, NAME, from -> to, "what") */
#define IPC_MESSAGES(X)                                                                            \
	X(1, CONFIG, "monitor to worker: sealed memfd of the effective configuration text")        \
	X(2, RING, "monitor to engine: struct ipc_ring; fds: ring; with a memory file, an eventfd") \
	X(3, SIDEBAND, "monitor to engine: struct ipc_sideband; fd: one side-band buffer")         \
	X(4, LEDGER, "monitor to worker: fd: its ledger page")                                     \
	X(5, PEER, "monitor to engine and net: fd: their common socket, after every restart")      \
	X(6, KALLSYMS, "monitor to engine: fd: /proc/kallsyms, opened with the right to addresses") \
	X(7, CAPTURE, "monitor to engine: fd: where to write a capture")                           \
	X(8, START, "monitor to worker: everything was sent")                                      \
	X(9, READY, "worker to monitor: the sandbox is closed")                                    \
	X(10, STOP, "monitor to worker: finish, flush, exit")                                      \
	X(11, RELOAD, "monitor to worker: struct ipc_reload; fds: configuration; to net perhaps a listener") \
	X(14, RELOADED, "worker to monitor: the new configuration is in force")                    \
	X(15, DEBUGINFOD, "monitor to engine: struct ipc_debuginfod: the state of a file's debug information") \
	X(12, RATE, "monitor to engine: struct ipc_rate; back: its id, after the old rate's profile") \
	X(13, LIMITS, "monitor to engine: struct ipc_limits")                                      \
	X(16, RELEASED, "engine to monitor: it has read much of the ring, which is to be freed")   \
	X(35, BLAME, "opener to monitor: struct blame: whose file or memory it touches next")       \
	X(36, BANS, "monitor to opener: struct ipc_bans: what it must not touch")                  \
	X(19, KEY, "monitor to opener: what it signs tickets with (daemon/ticket.h)")              \
	X(20, ASK, "engine or indexer to monitor; monitor to opener, fd: the asker's socket: struct ipc_ask and path") \
	X(21, ANSWER, "to the asker, by the opener or the monitor: struct ipc_answer and data; fd: file or memfd") \
	X(17, FOUND, "opener to monitor: an answer waits for room in the asker's socket")          \
	X(18, ANSWERED, "opener to monitor: the asker was answered")                               \
	X(22, PLAN, "engine to monitor: struct ipc_plan")                                          \
	X(23, HINT, "engine to monitor: struct ipc_hint")                                          \
	X(39, WALK, "engine to monitor: struct ipc_walk")                                          \
	X(24, LIFE, "engine to monitor: struct ipc_life of each process that began a program or ended") \
	X(25, WATCH, "monitor to engine: u32: whether to send LIFE")                               \
	X(26, INDEX, "monitor to indexer: struct ipc_index, path, debug directories; fds: index, scratch, a socket for FILE") \
	X(33, FILE_WANTED, "monitor to engine: the tag of its question for an index; fd: where to send FILE") \
	X(34, FILE, "engine to indexer: fd: the ELF file")                                         \
	X(37, DECODER, "monitor to decoder: struct ipc_decoder; fd: its socket to the engine")     \
	X(49, WALKABLE, "decoder to monitor: struct otp_walk: how the process that it reads may be walked") \
	X(58, BESIDE, "decoder to monitor: struct ipc_beside and a name (process/beside.h): to be opened") \
	X(38, DECODER_END, "engine to monitor: u64 id of a decoder that it has no use for")        \
	X(44, ATTACH, "engine to decoder: struct decode_attach; fd: the ELF file; see daemon/decode.h") \
	X(45, ATTACHED, "decoder to engine: struct decode_attached")                               \
	X(46, DECODE, "engine to decoder: struct decode_batch and frames")                         \
	X(47, FUNCTION, "decoder to engine: struct decode_function, lines and texts")              \
	X(57, CODE, "decoder to engine: struct decode_code, functions, nodes and rows")             \
	X(48, READ, "decoder to engine: struct decode_read and bytes")                             \
	X(27, INDEXED, "indexer to monitor: struct ipc_indexed")                                   \
	X(28, FETCH, "monitor to fetcher: struct ipc_fetch; fd: the debug file to write")          \
	X(29, FETCHED, "fetcher to monitor: struct ipc_fetched")                                   \
	X(30, REQUEST, "engine to net: struct ipc_request; fd: sealed memfd with the message")     \
	X(31, RECEIVED, "net to engine: u64 id of the last request received")                      \
	X(32, DRAINED, "net to monitor: the answer to PEER: the previous socket was read to its end") \
	X(40, STATUS_WANTED, "net to monitor: u32 format; the metrics listener has a request")     \
	X(41, STATUS, "monitor to net: fd: sealed memfd with the text")                            \
	X(42, EXPLAIN, "monitor to engine: u32 pid; fd: the monitor's memfd, for JSON; the tag identifies the question") \
	X(43, EXPLAINED, "engine to monitor: the same tag; the memfd is written")                  \
	X(51, TOKEN, "monitor to hub: what a request needs, as text; empty: nothing")              \
	X(52, HUB, "monitor to engine: fd: where to send PROFILES")                                \
	X(53, PROFILES, "engine to hub: u64 length; fd: sealed memfd with a request, which net has too") \
	X(54, LISTEN, "monitor to hub: struct ipc_listen; fds: its listener; where it has TLS, memfds of certificate and key") \
	X(55, SELECT, "hub to monitor: the words of a selection (process/selection.h); empty: its end") \
	X(56, SELECTED, "monitor to hub: struct ipc_selected: what is in force, or why a request was refused") \
	X(50, BEAT, "worker to monitor: alive; u64 counter")

enum ipc_type {
#define X(number, NAME, text) IPC_##NAME = number,
	IPC_MESSAGES(X)
#undef X
};

/*
 * The hand-over of a request. Each sample is counted in one place, whichever
 * process is killed at whatever moment:
 * - The engine publishes handed and last_id (its page) before it sends REQUEST.
 * - net publishes received and received_id (its page) before it sends RECEIVED.
 *   Its first message on every new socket is RECEIVED with the page's
 *   received_id; before this message arrives, the engine sends nothing on that
 *   socket. Then the engine sends every request that it keeps with a higher id
 *   again. net drops, uncounted, a request whose id is not above received_id.
 * - The engine dies: the monitor sends net a new PEER. net reads its previous
 *   socket, if any, to the end, then answers DRAINED. Only then the monitor
 *   books handed - received, and held too, as lost (engine_died), and starts
 *   an engine, which continues from the page: ids from last_id + 1, ring from
 *   ring_pos.
 * - net dies: the monitor books queued as lost (net_died) and sending as
 *   unconfirmed, and sends a PEER to both the new net and the engine.
 * - STOP: the engine drains the ring, hands over and exits; the monitor sends
 *   STOP to net when the engine has exited; net reads its socket to the end,
 *   then flushes.
 */

struct ipc_head {
	uint32_t type; /* enum ipc_type */
	uint32_t len;  /* of the data */
	uint64_t tag;  /* of ASK and ANSWER: pairs them */
};

struct ipc_ring { uint64_t ring_bytes, pos; struct origins origins; uint32_t flags, reserved; };
#define IPC_RING_SCAN 1 /* nobody reports process life: the engine has to scan /proc */
/* Samples from ring position pos on have these periods; those before pos have the previous ones. */
struct ipc_rate { uint64_t pos, id; struct origins origins; };
struct ipc_limits { uint64_t cache_bytes; uint32_t stack_max_bytes, reserved; };
struct ipc_sideband { uint64_t data_bytes; };
struct ipc_program { uint64_t dev, ino; uint32_t uid, gid, mode, reserved; };
/*
 * HOST_OPEN_DEBUG: the monitor adds the program that the debug file is for; its path follows path and a NUL.
 * HOST_OPEN_DECODER: the engine adds the file's ticket; the monitor sends an opener the file as program.
 */
struct ipc_ask {
	uint32_t kind, pid;
	uint64_t pid_start_ns, start, end, ino;
	uint32_t len, alternate_pid, path_len, reserved;
	struct ipc_program program;
};
struct ipc_index { uint32_t path_len, dirs_len, symbols_only, reserved; struct ticket_file file; /* to expect */ };
struct ipc_decoder { struct ticket_file file; /* to expect */ uint32_t uid, gid; /* to become; not of an ordinary user */ };
struct ipc_beside { uint64_t address; /* of the mapping that the file lies beside */ };
struct ipc_indexed { int32_t err; uint32_t flags; uint64_t index_bytes, lines; };
/* state: enum fetch_state; FETCHED: a new index holds more. content: the file's htlhash; all: of every file. */
struct ipc_debuginfod { uint64_t content[2]; uint32_t state, all; };
struct ipc_fetch { char id[FETCH_ID_MAX + 7]; };
struct ipc_fetched { uint32_t state, requests; uint64_t bytes; char text[160]; };
struct ipc_answer { int32_t err; uint32_t reserved; };
/* Its error; -EBADMSG for one that is positive: whoever sent it was taken over. */
static inline int ipc_answer_error(const struct ipc_answer *a)
{
	return a->err > 0 ? -EBADMSG : a->err;
}
/* copy_overlays: any overlay's files are passed as copies, because engine or indexer hung. */
struct ipc_bans { uint32_t count, copy_overlays; struct blame ban[BLAME_MAX]; };
struct ipc_plan { uint32_t pid, remove; /* struct otp_plan follows */ };
struct ipc_walk { uint32_t pid, remove; /* struct otp_walks follows, unless remove */ };
struct ipc_hint { char comm[OTP_COMM_LEN]; struct otp_hint hint; }; /* a hint of zeros: remove it */
enum ipc_reload_metrics { IPC_METRICS_STAY, IPC_METRICS_END, IPC_METRICS_NEW /* the second descriptor */ };
struct ipc_reload { uint32_t metrics, reserved; };
struct ipc_life { uint32_t pid, parent; /* 0: an exec or an exit, no fork */ };
struct ipc_request { uint64_t id, len; struct ledger_counts samples; };
struct ipc_listen { uint32_t tls, reserved; };
/* why: "" unless the last SELECT was refused; may: whether SELECT is obeyed. */
struct ipc_selected { struct selection_shown shown; char why[SELECTION_WHY]; uint32_t may, reserved; };
enum ipc_status_format { IPC_STATUS_PROMETHEUS = 1 }; /* of STATUS_WANTED */

/* Sends the whole message or nothing. -EAGAIN: the peer's buffer is full; -EPIPE: it is gone. fds are borrowed. */
int ipc_send(int sock, uint32_t type, uint64_t tag, const void *data, size_t len, const int *fds, int nr_fds);

/* The same without descriptors, by a system call that can pass none (for who must not). Copies the data. */
int ipc_send_bytes(int sock, uint32_t type, uint64_t tag, const void *data, size_t len);

struct ipc_message {
	struct ipc_head head;
	int fds[IPC_FDS_MAX]; /* owned by the receiver; -1 where none */
	uint8_t data[IPC_DATA_MAX] __attribute__((aligned(8)));
};

/* 1 and a message, 0 when the peer closed, -EAGAIN when there is none, -EBADMSG. */
int ipc_receive(int sock, struct ipc_message *m);
/*
 * The same of a peer that has no descriptors to pass: -EBADMSG if it passes any.
 * None of them becomes one of this process, which could wait for ever to close it.
 */
int ipc_receive_plain(int sock, struct ipc_message *m);
int ipc_wait(int sock, struct ipc_message *m); /* blocks until a message arrives; returns as ipc_receive */
void ipc_close_fds(struct ipc_message *m); /* those that were not taken */
int ipc_take_fd(struct ipc_message *m, int i); /* owned by the caller */
int ipc_nr_fds(const struct ipc_message *m);
/* Whether m has exactly len bytes of data and nr_fds descriptors. */
bool ipc_fits(const struct ipc_message *m, size_t len, int nr_fds);

int ipc_pair(int fds[2]); /* owned by the caller; SEQPACKET, close-on-exec, non-blocking */
/* A sealed memfd of these bytes; owned. */
int ipc_memfd(const char *name, const void *data, size_t len);
/* The same in steps: an empty one, written by the caller, then sealed against every change. */
int ipc_memfd_new(const char *name);
int ipc_memfd_seal(int fd);
/* Whole content of a sealed memfd of at most max bytes, NUL added, owned by the caller. -EBADMSG: unsealed; -EFBIG. */
int ipc_memfd_read(int fd, size_t max, char **ret, size_t *ret_len);

#endif
