/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers: the states of a requested file.
 * Used by the monitor, the engine, the indexer and the fetcher; pure, texts are static.
 *
 * The indexer requests a file by its build-id, as any other debug file, when
 * there is none on disk. The monitor answers from its cache, or queues the
 * request; it never waits and reads no byte of such a file. The fetcher is a
 * process for one file: it has the network, its own user, the private root of
 * net (resolver files and CA bundle), one descriptor to write, and a bound on
 * bytes, memory and time. It is separate from net because net holds the
 * exporters' secrets and unsent samples, which a server's answer must not
 * reach, and because a worker for one file needs no bookkeeping when it
 * crashes. The fetched file is not trusted: the indexer checks the build-id
 * again, and a file that kills the indexer is dropped.
 */
#ifndef OTP_DAEMON_FETCH_H
#define OTP_DAEMON_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#define FETCH_ID_MAX 41 /* a build-id of 20 bytes in hexadecimal, and its NUL */

/* X(NAME, name, retried soon, text for the operator). Names are written to files of the cache. */
#define FETCH_STATES(X)                                                                          \
	X(NONE, "", false, "")                                                                   \
	X(WAITING, "waiting", false, "a debuginfod server will be queried")                        \
	X(FETCHED, "fetched", false, "fetched by debuginfod")                                    \
	X(NOT_FOUND, "not_found", false, "no debuginfod server has it")                          \
	X(REFUSED, "refused", false, "a debuginfod server refused it")                           \
	X(REDIRECT, "redirect", false, "a debuginfod server redirected to a forbidden address")         \
	X(TOO_LARGE, "too_large", false, "the file from debuginfod is larger than max_file_bytes")    \
	X(NOT_ELF, "not_elf", false, "the file from debuginfod is no ELF file")                 \
	X(WRONG_ID, "wrong_build_id", false, "the file from debuginfod is another build's")     \
	X(NO_DEBUG, "no_debug_info", false, "the file from debuginfod has no debug information") \
	X(UNREADABLE, "unreadable", false, "the file from debuginfod cannot be read")           \
	X(TRUNCATED, "truncated", true, "the file from debuginfod is cut off")                  \
	X(TIMEOUT, "timeout", true, "debuginfod took too long")                                  \
	X(DIED, "fetcher_died", true, "the process that queried debuginfod died of the answer")    \
	X(SERVER, "server_error", true, "a debuginfod server has an error")                      \
	X(UNREACHABLE, "unreachable", true, "no debuginfod server can be reached")               \
	X(LOCAL, "local_error", true, "the file from debuginfod could not be stored")

enum fetch_state {
#define X(NAME, name, again, text) FETCH_##NAME,
	FETCH_STATES(X)
#undef X
	FETCH_STATE_NR
};

const char *fetch_state_name(uint32_t state); /* "" beyond the list */
const char *fetch_state_text(uint32_t state);
bool fetch_state_again(enum fetch_state state); /* retried soon */
enum fetch_state fetch_state_find(const char *name); /* NONE: no state has this name */
bool fetch_id_is_sound(const char *id); /* 2 to 20 bytes in lower-case hexadecimal */

#endif
