/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as one OTLP request: a stack for each node with a value of its own.
 * A call tree has no addresses, so a location is a function.
 *
 * Called by snapshot.c, one thread. Errors: -E2BIG, the buffer's bound; -ENOMEM.
 */
#ifndef OTP_HUB_TREE_OTLP_H
#define OTP_HUB_TREE_OTLP_H

#include "hub/snapshot.h"

int tree_otlp(const struct snapshot *s, struct buf *out);

#endif
