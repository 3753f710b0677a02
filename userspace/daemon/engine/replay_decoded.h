/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What decoders had read while a capture was taken, found by their questions
 * and served as memory.
 *
 * Called by the replay, one thread. Hostile like any capture: every length is
 * checked. A read is served from the question's own reads only, in their order
 * where they repeat: memory may have changed in between. A file that a function
 * needed is served from its reads, too.
 */
#ifndef OTP_DAEMON_ENGINE_REPLAY_DECODED_H
#define OTP_DAEMON_ENGINE_REPLAY_DECODED_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "daemon/engine/decoders.h"

struct replay_memory {
	struct memory memory; /* first */
	const uint8_t *data;
	size_t len;
	size_t at; /* behind the read that was served last */
};

struct replay_decoded {
	struct decoders_replay as; /* the answer to HOST_OPEN_DECODER */
	struct map questions;	   /* hash -> address of the record */
	struct replay_memory memory;
};

void replay_decoded_init(struct replay_decoded *r);
void replay_decoded_done(struct replay_decoded *r);
/* A CAPTURE_DECODED, borrowed until _done; malformed ones are left out. -ENOMEM. */
int replay_decoded_add(struct replay_decoded *r, const void *record, size_t len);

#endif
