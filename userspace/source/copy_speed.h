/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes of a stack one tick may copy of a program that nobody knows:
 * half as many as this machine copies in the time for which a tick may hold up
 * interrupts (otp_tick_bytes says why half). The bound is one of bytes: each
 * page that is not in memory costs a fault besides.
 *
 * Called by the monitor, one thread; the defaults that it writes into the
 * sampler hold the bound, so that ticks only compare numbers. Measured once, at
 * the first call, which takes some 5 ms and 4 MiB. Without memory there is no
 * measurement, and no bound.
 */
#ifndef OTP_SOURCE_COPY_SPEED_H
#define OTP_SOURCE_COPY_SPEED_H

#include <stdbool.h>
#include <stdint.h>

bool kernel_is_rt(void); /* PREEMPT_RT */
/* The time that such a copy may take: less where the kernel is a PREEMPT_RT one. */
uint64_t copy_speed_limit_ns(void);
/* The value of otp_defaults.tick_bytes; 0: no bound. */
uint32_t copy_speed_tick_bytes(void);

#endif
