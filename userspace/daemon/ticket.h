/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's ticket: what an opener saw of a file that it opened for the engine,
 * signed with a key that only the monitor and its openers know. The engine, which
 * may be taken over, shows it with its questions about the file; the monitor
 * believes the ticket, and never touches the file, which could hold it for ever.
 *
 * Made by openers, checked by the monitor; the indexer compares the file that
 * the engine sends it. Pure, but for ticket_shows, which may hang as any fstat.
 * A signature costs two SHA-256 of some 150 bytes.
 */
#ifndef OTP_DAEMON_TICKET_H
#define OTP_DAEMON_TICKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "process/host.h"
#include "process/sha256.h"

#define TICKET_KEY 32 /* bytes */

/* What a descriptor shows of its file. */
struct ticket_file {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns;
	uint32_t uid, gid, mode, reserved;
};

struct ticket {
	struct ticket_file file;
	struct ticket_file shown; /* by the descriptor that was passed on: another one where that is a copy */
	uint8_t mac[SHA256_LEN];  /* HMAC (RFC 2104) of the fields above */
};

_Static_assert(sizeof(struct ticket) == sizeof(struct host_ticket), "the engine keeps a ticket as it is");

void ticket_file_of(const struct stat *st, struct ticket_file *ret);
void ticket_sign(struct ticket *t, const uint8_t key[TICKET_KEY]);
bool ticket_is_good(const struct ticket *t, const uint8_t key[TICKET_KEY]);
/* Whether this is the file of the ticket, unchanged. 0, -ESTALE or negative errno. */
int ticket_file_check(const struct ticket_file *shown, int fd);

#endif
