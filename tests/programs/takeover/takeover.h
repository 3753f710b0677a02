/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for workers that were taken over. Each is otprofd or otprof-worker itself,
 * with one role's main replaced: the monitor and the other workers are the real ones,
 * and the stand-in has closed the real sandbox around itself before it
 * attacks. It reports to stderr in lines of the tests ("ok - ", "not ok - "),
 * and ends with "takeover: done".
 *
 * The process that holds what must not be reached has these files in its
 * directory, mapped at addresses that both know.
 */
#ifndef OTP_TESTS_TAKEOVER_H
#define OTP_TESTS_TAKEOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "daemon/ipc.h"
#include "daemon/ticket.h"

#define HELD_COMM   "takeover-held"	/* of root */
#define OTHER_COMM  "takeover-other"	/* of nobody, with the same mappings */
#define HELD_SECRET "takeover-secret-" /* in all that must not arrive */
#define HELD_BYTES  8192u
#define HELD_FIRST  0x100000000000ULL
#define HELD_STEP   0x100000ULL
/* The secret in the memory of both. */
#define HELD_MEMORY (HELD_FIRST + 32 * HELD_STEP)

/* Names in the directory, or absolute ones; mapped in this order. Unused in some of the programs. */
__attribute__((unused)) static const struct {
	const char *name;
	int protection;
} held_files[] = {
	{"program", PROT_READ | PROT_EXEC}, /* may be opened */
	{"text", PROT_READ},
	{"text", PROT_READ | PROT_EXEC},
	{"core", PROT_READ},
	{"core", PROT_READ | PROT_EXEC},
	{"private", PROT_READ},
	{"private", PROT_NONE},
	{"jitdump", PROT_READ},
	{"/etc/shadow", PROT_READ},
	{"/etc/shadow", PROT_READ | PROT_EXEC},
	{"/dev/zero", PROT_READ | PROT_EXEC},
};

/* Lines of a report. */
void takeover_ok(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void takeover_done(void);

/* Whether a descriptor holds the secret, in as much as it lets be read. */
bool takeover_holds_secret(int fd);

/* Lengths around every structure and bound; *i counts up, false at the end. */
bool takeover_length(int *i, uint32_t *ret);
bool takeover_type(int *i, uint32_t *ret); /* every type that ipc.h has */

/* As ipc_send, without its checks: claimed is the length that the head states. */
int takeover_send(int sock, uint32_t type, uint64_t tag, const void *data, uint32_t len, uint32_t claimed,
		  const int *fds, int nr_fds);
/* Each may be NULL. */
struct takeover_flood {
	bool (*leaves_out)(uint32_t type);
	void (*after_each)(void);
};
/*
 * Every type with every length; to others than the monitor with no, one and four descriptors. 0, or the error that
 * ended it.
 */
int takeover_flood(int sock, const struct takeover_flood *f, uint32_t *ret_sent);
/* Engine's socket to net, and net's to the engine, wherever they are kept: any but the monitor's. -1: none. */
int takeover_peer(void);
/* Waits up to ms; as ipc_receive, -ETIMEDOUT. */
int takeover_receive(int sock, struct ipc_message *m, int ms);
/* ask.c: one question to the monitor, and its answer, whose descriptors are in takeover_answer; its error or 0. */
int takeover_ask(const struct ipc_ask *q, const char *path);
/* The same: reports an answer that may not be, and closes its descriptors. Whether a descriptor arrived. */
bool takeover_try(const struct ipc_ask *q, const char *path);
/* Names that lead to no program, in directory and elsewhere, and one that does; try_name counts what arrived. */
void takeover_try_names(const char *directory, uint32_t (*try_name)(const char *path));
/* The same question about a file, by its ticket. */
int takeover_ask_file(const struct ipc_ask *q, const struct ticket *file);
extern struct ipc_message takeover_answer;
extern uint64_t takeover_asked; /* the last tag */

/* find.c: root's process that holds something, and nobody's; their directory. Exits where they are not found. */
struct takeover_process {
	uint32_t pid;
	uint64_t start_ns;
};
extern struct takeover_process takeover_held[2];
extern char takeover_directory[4096];
void takeover_find(void);
/* find.c: the program that root's process has mapped, opened; the caller's. */
int takeover_program(struct ticket *ret_file);
/*
 * find.c: asks for a decoder, passes it fd as the file, and reads what it sends: reports a descriptor, memory, or the
 * secret. The error of ATTACHED, or of an earlier step; 0: it is attached.
 */
int takeover_decoder(const struct ipc_ask *q, const struct ticket *file, int fd);

/* Waits for the monitor to end this process; what it does not is reported. */
__attribute__((noreturn)) void takeover_expect_death(int sock, const char *why);
/* Alive until the monitor says STOP, with a beat each second. */
__attribute__((noreturn)) void takeover_stay(int sock);

#endif
