/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers: what can become of one that is wanted.
 *
 * Who does what: the indexer asks for a file by its build-id, as for any other
 * debug file, when there is none on disk. The monitor answers from its cache,
 * or notes the wish; it never waits and reads no byte of such a file. The
 * fetcher is a process for one file: it has the network, its own user, the
 * private root of net (resolver files and CA bundle), one descriptor to write,
 * and a bound on bytes, memory and time. net would be the wrong place: it
 * holds the exporters' secrets and samples on their way, which an answer from
 * a stranger should not get near, and a worker that is there for one file
 * needs no bookkeeping when it dies of it. What it has written is believed
 * by nobody: the indexer looks at the build-id again, and what it does not survive is
 * forgotten.
 */
#ifndef OTP_DAEMON_FETCH_H
#define OTP_DAEMON_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#define FETCH_ID_MAX 41 /* a build-id of 20 bytes in hexadecimal, and its NUL */

/* X(NAME, name, is it worth another try soon, what an operator reads). Names stand in files of the cache. */
#define FETCH_STATES(X)                                                                          \
	X(NONE, "", false, "")                                                                   \
	X(WAITING, "waiting", false, "a debuginfod server will be asked")                        \
	X(FETCHED, "fetched", false, "fetched by debuginfod")                                    \
	X(NOT_FOUND, "not_found", false, "no debuginfod server has it")                          \
	X(REFUSED, "refused", false, "a debuginfod server refused it")                           \
	X(REDIRECT, "redirect", false, "a debuginfod server led to where nobody may go")         \
	X(TOO_LARGE, "too_large", false, "what debuginfod has is larger than max_file_bytes")    \
	X(NOT_ELF, "not_elf", false, "what came from debuginfod is no ELF file")                 \
	X(WRONG_ID, "wrong_build_id", false, "what came from debuginfod is another build's")     \
	X(NO_DEBUG, "no_debug_info", false, "what came from debuginfod has no debug information") \
	X(UNREADABLE, "unreadable", false, "what came from debuginfod cannot be read")           \
	X(TRUNCATED, "truncated", true, "what came from debuginfod is cut off")                  \
	X(TIMEOUT, "timeout", true, "debuginfod took too long")                                  \
	X(DIED, "fetcher_died", true, "the process that asked debuginfod died of the answer")    \
	X(SERVER, "server_error", true, "a debuginfod server has an error")                      \
	X(UNREACHABLE, "unreachable", true, "no debuginfod server can be reached")               \
	X(LOCAL, "local_error", true, "what came from debuginfod could not be kept")

enum fetch_state {
#define X(NAME, name, again, text) FETCH_##NAME,
	FETCH_STATES(X)
#undef X
	FETCH_STATE_NR
};

const char *fetch_state_name(uint32_t state); /* "" beyond the list */
const char *fetch_state_text(uint32_t state);
bool fetch_state_again(enum fetch_state state); /* worth another try soon */
enum fetch_state fetch_state_find(const char *name); /* NONE */
bool fetch_id_is_sound(const char *id); /* 2 to 20 bytes in lower-case hexadecimal */

#endif
