/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good an interval's samples are: stacks by their end, frames by where
 * their names come from. Counted as samples show it, so that a share is what a
 * flame graph shows. Used within profile/ only, once an interval.
 */
#ifndef OTP_PROFILE_QUALITY_H
#define OTP_PROFILE_QUALITY_H

#include "profile/names.h"

/* order: numbers of all samples, those of a workload together. */
void quality_tell(const struct profile_builder *b, const struct names *n, const uint32_t *order);

#endif
