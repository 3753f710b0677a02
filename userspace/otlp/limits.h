/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of one OTLP request, set by whoever reads requests. A request
 * beyond one of them is refused.
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
