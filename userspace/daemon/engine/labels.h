/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of what a program runs, which it set itself, as goroutines have them, or
 * which its runtime names: which of them become attributes of samples, and their
 * text.
 *
 * A label with ever new values, a request's number, would make as many series
 * in stores: so a process may have LABEL_VALUES values of each of LABEL_KEYS
 * keys, and LABEL_NAMES of one whose values are names in its code. A key that
 * exceeds this is left out from then on.
 * Called by runtimes_context.c, one thread. Lifetime: of the process' runtime.
 * Bounds: as many numbers as values.
 * Cost: a lookup for each label.
 */
#ifndef OTP_DAEMON_ENGINE_LABELS_H
#define OTP_DAEMON_ENGINE_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/strpool.h"
#include "runtime/runtime.h"

#define LABEL_KEYS   16
#define LABEL_VALUES 64
#define LABEL_NAMES  512

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
