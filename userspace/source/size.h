/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes by number of CPUs and rate: the ring, the side-band's buffers, and the
 * memory of the whole program. The sources and the table in otprofd(8) take
 * their sizes from here.
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
 * reads four times a second is never late, and one that died is restarted before
 * the ring is full.
 */
uint32_t size_ring(uint32_t cpus, uint32_t frequency_hz);
/* The same, but at most an eighth of memory_bytes, the limit of the whole program; 0: no limit. */
uint32_t size_ring_within(uint32_t cpus, uint32_t frequency_hz, uint64_t memory_bytes);

/* Side-band buffer of each CPU, without its head. */
uint32_t size_sideband(uint32_t cpus);

/* All of it in a steady state: processes, ring, maps, buffers. */
uint64_t size_memory(uint32_t cpus, uint32_t frequency_hz);

#endif
