/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes that distinguish samples of one resource. Used within profile/
 * only.
 *
 * An attribute that only repeats the resource's own is left out: it would
 * distinguish nothing, and receivers would show the label twice.
 */
#ifndef OTP_PROFILE_ATTRIBUTES_H
#define OTP_PROFILE_ATTRIBUTES_H

#include "profile/dictionary.h"

struct attribute_list {
	uint32_t count;
	uint32_t of[SAMPLE_ATTRIBUTE_NR + PROFILE_LABELS_MAX]; /* numbers in the dictionary */
};

/* The attributes of key that mask selects; their text is borrowed from the builder. 0 or negative errno. */
int sample_attributes(struct dictionary *d, const struct sample_key *key, const struct workload *w, uint32_t mask,
		      struct attribute_list *ret);

#endif
