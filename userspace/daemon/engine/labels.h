/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels that a program set itself on what it runs, as goroutines have them:
 * which of them become attributes of samples, and their text.
 *
 * A label with ever new values, a request's number, would make as many series
 * in stores: so a process may have LABEL_VALUES values of each of LABEL_KEYS
 * keys. A key that exceeds this is left out from then on.
 * Called by runtimes_context.c, one thread. Lifetime: of the process' runtime.
 * Bounds: LABEL_KEYS times LABEL_VALUES numbers, allocated with the first label.
 * Cost: a pass over the values of each label's key.
 */
#ifndef OTP_DAEMON_ENGINE_LABELS_H
#define OTP_DAEMON_ENGINE_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strpool.h"
#include "runtime/runtime.h"

#define LABEL_KEYS   16
#define LABEL_VALUES 64

struct labels_key; /* a key, and its values so far */

struct labels {
	struct labels_key *key; /* owned, LABEL_KEYS; NULL until the first */
	uint32_t nr;
};

void labels_done(struct labels *l);
/*
 * The text of those that are taken: key, NUL, value, NUL of each, in the order of keys. NULL: none, or no memory. The
 * caller owns it. *left grows by those that are not taken.
 */
struct str *labels_take(struct labels *l, const struct runtime_context *c, uint64_t *left);

#endif
