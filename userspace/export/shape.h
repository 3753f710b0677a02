/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in the shape that a destination wants: the attributes of its preset,
 * and an interval of several of the engine's. The engine's requests are merged
 * into one recording, whose entries exist once, and written as one request.
 *
 * Called by the exporter, one thread. A shape serves all destinations that want
 * the same one; destinations that want the engine's requests have none, and pay
 * nothing. What a shape holds is not sent yet: the exporter counts it in the
 * ledger as queued, for each of its destinations.
 * Bounds: SHAPE_BYTES of the engine's requests; an interval that has more ends
 * early, so no request is larger than the engine's may be. A single request of
 * any size is a shape of its own.
 * Cost: an engine's request of 75 KB costs net some 2 ms more than sending it
 * as it is (bench export), and memory for what is held, about its bytes.
 */
#ifndef OTP_EXPORT_SHAPE_H
#define OTP_EXPORT_SHAPE_H

#include "export/export.h"

#define SHAPE_BYTES (4u << 20)

struct recording;
struct shape {
	enum export_preset preset;
	uint64_t interval_ns, engine_ns; /* the interval, and the engine's */
	struct recording *merged;	 /* owned; NULL: it holds nothing */
	struct ledger_counts samples;	 /* in it */
	size_t bytes;			 /* of the requests in it */
	uint64_t last_id;		 /* of the last of them */
	uint64_t due_ns;		 /* its interval ends; UINT64_MAX: it holds nothing */
};

/* Whether a destination wants other requests than the engine's. */
bool shape_wanted(const struct export_config *cfg);
bool shape_fits(const struct shape *s, const struct export_config *cfg);
void shape_init(struct shape *s, const struct export_config *cfg);
void shape_done(struct shape *s); /* drops what it holds */

/* Whether r has room beside what is held. */
bool shape_has_room(const struct shape *s, const struct export_request *r);
/* Merges r, which stays the caller's. On failure nothing changed: -EBADMSG, -E2BIG, -ENOMEM. */
int shape_add(struct shape *s, const struct export_request *r, uint64_t now_ns);
/* Ends the interval: what is held, as a request, owned by the caller. It holds nothing afterwards, on failure too. */
int shape_finish(struct shape *s, struct export_request **ret);

#endif
