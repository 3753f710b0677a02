/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells samples of one resource apart. Used within profile/ only.
 *
 * An attribute that only repeats the resource's own is left out: it would tell
 * nothing apart, and a label twice.
 */
#ifndef OTP_PROFILE_ATTRIBUTES_H
#define OTP_PROFILE_ATTRIBUTES_H

#include "profile/dictionary.h"

struct attribute_list {
	uint32_t count;
	uint32_t of[SAMPLE_ATTRIBUTE_NR]; /* numbers in the dictionary */
};

/* The attributes of key among those in mask; their text is the builder's. */
int sample_attributes(struct dictionary *d, const struct sample_key *key, const struct workload *w, uint32_t mask,
		      struct attribute_list *ret);

#endif
