/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of one OTLP request, set by the caller that reads requests. A
 * request that exceeds one is refused.
 */
#ifndef OTP_OTLP_LIMITS_H
#define OTP_OTLP_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct otlp_limits {
	size_t request_bytes; /* encoded */
	size_t memory_bytes;  /* decoded */
	uint32_t depth;       /* locations of a stack, lines of a location */
};

#endif
