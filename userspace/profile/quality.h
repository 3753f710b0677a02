/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quality of an interval's samples: stacks by their end, frames by kind, by
 * the source of their names and by guess. Each is counted once per sample, of
 * all origins together: a sample that stands for many events counts as one, so
 * shares differ from those in a flame graph where values are not samples. Used
 * within profile/ only, once an interval.
 */
#ifndef OTP_PROFILE_QUALITY_H
#define OTP_PROFILE_QUALITY_H

#include "profile/names.h"

/* Calls the configuration's quality. order: numbers of all samples, those of one workload adjacent. */
void quality_report(const struct profile_builder *b, const struct names *n, const uint32_t *order);

#endif
