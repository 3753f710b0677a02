/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow of control in compiled code of HotSpot, by its jumps: loops, as far as a jump back shows them, and where an
 * instruction does not lead to the next one.
 *
 * Private to hotspot*.c. Called by decoders. Code that no instruction can be read from has no jumps. Bounded by FLOW_*; what
 * lies beyond is not seen. Units: bytes from the start of the code.
 */
#ifndef OTP_RUNTIME_HOTSPOT_FLOW_H
#define OTP_RUNTIME_HOTSPOT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/memory.h"

#define FLOW_LOOPS  512
#define FLOW_BREAKS 8192

struct flow_loop { uint32_t begin, end; };
struct flow_break { uint32_t at; bool always; }; /* behind a jump; on every way, or on a condition */

struct hotspot_flow {
	uint32_t nr_loops, nr_breaks;
	struct flow_loop loop[FLOW_LOOPS];
	struct flow_break breaks[FLOW_BREAKS];
};

/* From an offset at which an instruction begins. */
void hotspot_flow_read(struct hotspot_flow *f, struct memory *m, uint64_t code, uint64_t from, uint64_t size);
/* The shortest loop around an offset that is longer than so many bytes; false: none. */
bool hotspot_flow_loop(const struct hotspot_flow *f, uint32_t at, uint32_t longer_than, struct flow_loop *ret);
/*
 * The offset from which on control runs straight to the instruction at to: behind the last jump in between (strictly), or
 * behind the last unconditional one.
 */
uint32_t hotspot_flow_straight(const struct hotspot_flow *f, uint32_t from, uint32_t to, bool strictly);
/* The next offset, before to, at which other loops are around than at from; to: none. */
uint32_t hotspot_flow_next(const struct hotspot_flow *f, uint32_t from, uint32_t to);

#endif
