/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host of so many CPUs needs at a rate: the ring, the side-band's
 * buffers, and the memory of the whole. The table in otprofd(8) comes from
 * here, and so do the sizes that the sources take.
 *
 * Called by sources, the side-band, the monitor and the tools. Pure.
 */
#ifndef OTP_SOURCE_SIZE_H
#define OTP_SOURCE_SIZE_H

#include <stdint.h>

#define SIZE_RING_MIN (4u << 20)
#define SIZE_RING_MAX (64u << 20)

/*
 * Two and a half seconds of samples at the default stack size: a reader that
 * comes four times a second is never late, and one that died is there again
 * before the ring is full.
 */
uint32_t size_ring(uint32_t cpus, uint32_t frequency_hz);
/* The same where the whole may take only so much: an eighth of it at the most. 0: no limit. */
uint32_t size_ring_within(uint32_t cpus, uint32_t frequency_hz, uint64_t memory_bytes);

/* Side-band buffer of each CPU, without its head. */
uint32_t size_sideband(uint32_t cpus);

/* All of it in a steady state: processes, ring, maps, buffers. */
uint64_t size_memory(uint32_t cpus, uint32_t frequency_hz);

#endif
