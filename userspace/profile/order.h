/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which an interval's samples are encoded: by resource, then by
 * profile, then by stack from the root. Neighbours then share most of their
 * frames, so that requests compress well. Used within profile/ only.
 */
#ifndef OTP_PROFILE_ORDER_H
#define OTP_PROFILE_ORDER_H

#include "profile/builder.h"

/* The numbers of all samples, the caller's to free. 0 or -ENOMEM. */
int order_samples(const struct profile_builder *b, uint32_t **ret);

#endif
