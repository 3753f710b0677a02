/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a slot share: slot.c keeps it within its bounds, slot_add.c
 * fills it. Not for others.
 */
#ifndef OTP_HUB_SLOT_INTERNAL_H
#define OTP_HUB_SLOT_INTERNAL_H

#include "base/array.h"
#include "hub/slot.h"

/*
 * A tree with free nodes and names, by evicting old buckets where it must be:
 * a new generation. pending: pairs of no bucket yet, whose nodes are held; they
 * are renumbered. False: there is next to nothing to gain, or no memory.
 */
bool slot_make_room(struct slot *s, struct bucket_entry *pending, uint32_t nr_pending);
void slot_trim(struct slot *s); /* evicts until the slot is within its bytes */
void slot_merge(struct slot *s); /* old buckets, a bounded number */

#endif
