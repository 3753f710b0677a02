// SPDX-License-Identifier: Apache-2.0
/*
 * Which place of a method's bytecode each of its instructions is of: bounds that
 * the compiler wrote down (dotnet/runtime, src/coreclr/vm/debuginfostore.cpp,
 * src/coreclr/inc/nibblestream.h, patchpointinfo.h; of 10
 * docs/design/datacontracts/DebugInfo.md). They are of the method itself: what is
 * inlined into it has the place of the call.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define PAGE	   4096u
#define HEAD_BYTES 24u /* four numbers */
#define BYTES_MAX  (32u << 10) /* of bounds: places behind them are not known */
#define LOCALS_MAX (1u << 16)

/* enum EXTRA_DEBUG_INFO_FLAGS */
#define FLAG_PATCHPOINT 1
#define FLAG_RICH	2

/* Places that are none (ICorDebugInfo::MappingTypes), and what is added to all. */
#define PLACE_NONE     UINT32_MAX
#define PLACE_PROLOG   (UINT32_MAX - 1)
#define PLACE_EPILOG   (UINT32_MAX - 2)
#define PLACE_BIAS     PLACE_EPILOG
#define INSTRUMENTED   UINT32_MAX /* in place of the size: two sizes follow */

struct dotnet_bits { const uint8_t *bytes; uint64_t at, end; bool failed; };

/* --- numbers --- */

static uint32_t bounds_bits(struct dotnet_bits *b, uint32_t nr)
{
	uint64_t value = 0;

	if (nr > b->end - b->at) {
		b->failed = true;
		return 0;
	}
	for (uint32_t i = 0; i < nr; i++, b->at++)
		value |= (uint64_t)(b->bytes[b->at / 8] >> b->at % 8 & 1) << i;
	return (uint32_t)value;
}

/* Three bits in each nibble, high ones first; the fourth says that another one follows. */
static uint32_t bounds_number(struct dotnet_bits *b)
{
	uint32_t value = 0, nibble = 8;

	while (nibble & 8 && !b->failed) {
		nibble = bounds_bits(b, 4);
		value = value << 3 | (nibble & 7);
	}
	return value;
}

static void bounds_to_byte(struct dotnet_bits *b)
{
	b->at = ALIGN_UP(b->at, 8);
}

/* --- where the bounds are --- */

/* What the compiler keeps for on-stack replacement lies before them, and what it was told to write down of inlining. */
static int bounds_skip_extra(const struct dotnet *d, struct memory *m, uint64_t *at)
{
	uint32_t locals, rich;
	uint8_t flags;

	if (memory_u8(m, (*at)++, &flags))
		return -EFAULT;
	if (flags & FLAG_PATCHPOINT) {
		if (memory_u32(m, *at + dotnet_row(d)->patchpoint_locals, &locals) || locals > LOCALS_MAX)
			return -EFAULT;
		*at += dotnet_row(d)->patchpoint_locals + 24 + 4ULL * locals;
	}
	if (flags & FLAG_RICH) {
		if (memory_u32(m, *at, &rich))
			return -EFAULT;
		*at += 4 + (uint64_t)rich;
	}
	return flags & ~(FLAG_PATCHPOINT | FLAG_RICH) ? -EBADMSG : 0;
}

/* The page behind its end may not exist. */
static int bounds_read_head(struct memory *m, uint64_t at, uint8_t head[HEAD_BYTES])
{
	if (memory_read(m, at, head, HEAD_BYTES) == 0)
		return 0;
	return memory_read(m, at, head, MIN((size_t)HEAD_BYTES, (size_t)(PAGE - at % PAGE)));
}

/* Where a profiler has changed the bytecode, the second ones are of that in the file. */
static int bounds_find(struct memory *m, uint64_t at, uint64_t *ret, uint32_t *ret_size)
{
	uint8_t head[HEAD_BYTES] = {0};
	struct dotnet_bits b = {.bytes = head, .end = sizeof(head) * 8};
	uint32_t skipped = 0;

	if (bounds_read_head(m, at, head))
		return -EFAULT;
	*ret_size = bounds_number(&b);
	if (*ret_size == INSTRUMENTED) {
		skipped = bounds_number(&b);
		*ret_size = bounds_number(&b);
	}
	bounds_number(&b); /* of variables */
	bounds_to_byte(&b);
	*ret = at + b.at / 8 + skipped;
	return b.failed ? -EBADMSG : 0;
}

/* --- bounds --- */

struct dotnet_bounds {
	struct dotnet_bits in;
	bool packed;
	uint32_t left, native_bits, place_bits;
	uint32_t native, place; /* the one at hand */
	bool is_behind;		/* the end of a frame was before it */
};

static void bounds_open(struct dotnet_bounds *b)
{
	b->left = bounds_number(&b->in);
	if (!b->packed)
		return;
	b->native_bits = bounds_number(&b->in) + 1;
	b->place_bits = bounds_number(&b->in) + 1;
	bounds_to_byte(&b->in);
	b->in.failed |= b->native_bits > 32 || b->place_bits > 32;
}

/* Packed ones begin with two bits of what is there besides. */
static bool bounds_next(struct dotnet_bounds *b)
{
	if (!b->left || b->in.failed)
		return false;
	b->left--;
	if (b->packed)
		bounds_bits(&b->in, 2);
	b->native += b->packed ? bounds_bits(&b->in, b->native_bits) : bounds_number(&b->in);
	b->place = PLACE_BIAS + (b->packed ? bounds_bits(&b->in, b->place_bits) : bounds_number(&b->in));
	if (!b->packed)
		bounds_number(&b->in);
	return !b->in.failed;
}

/*
 * The begin of the method's own frame belongs to its first place, the end of a frame to what returns there. Instructions
 * of no place are what the compiler added to a statement, or made of what it inlined, and go on where that has begun;
 * but not behind the end of a frame, where instructions lie that run rarely, of any statement.
 */
static uint32_t bounds_position(struct dotnet_bounds *b, uint32_t before)
{
	bool is_behind = b->is_behind;

	b->is_behind = b->place == PLACE_EPILOG;
	switch (b->place) {
	case PLACE_EPILOG:
		return before;
	case PLACE_PROLOG:
		return b->native ? DOTNET_NO_POSITION : 0;
	case PLACE_NONE:
		return is_behind ? DOTNET_NO_POSITION : before;
	default:
		return b->place;
	}
}

static int bounds_add(struct runtime_code_made *ret, uint32_t function, uint64_t offset, uint32_t position)
{
	int node = runtime_code_add_node(ret, function, 0, position);

	return node < 0 ? node : runtime_code_add_row(ret, (uint32_t)offset, (uint32_t)node);
}

/* The region may begin within the function: there the last one counts that lies before. */
static int bounds_add_all(struct dotnet_bounds *b, uint64_t code, uint32_t function, struct runtime_code_made *ret)
{
	uint64_t start = ret->code.start - code, end = ret->code.end - code, at = start;
	uint32_t position = DOTNET_NO_POSITION;
	int err = 0;

	while (!err && bounds_next(b) && b->native < end) {
		if (b->native > at) {
			err = bounds_add(ret, function, at - start, position);
			at = b->native;
		}
		position = bounds_position(b, position);
	}
	return err ? err : bounds_add(ret, function, at - start, b->in.failed ? DOTNET_NO_POSITION : position);
}

void dotnet_bounds(const struct dotnet *d, struct memory *m, const struct dotnet_compiled *c, uint32_t function,
		   uint32_t unknown, struct runtime_code_made *ret)
{
	static uint8_t bytes[BYTES_MAX];
	struct dotnet_bounds b = {.in.bytes = bytes, .packed = dotnet_row(d)->bounds_packed};
	uint64_t at = c->debug;
	uint32_t size;

	if (!at || c->code > ret->code.start || (c->jitted && bounds_skip_extra(d, m, &at)) ||
	    bounds_find(m, at, &at, &size) || !size)
		return;
	size = MIN(size, BYTES_MAX);
	if (memory_read(m, at, bytes, size))
		return;
	b.in.end = 8ULL * size;
	bounds_open(&b);
	/* Of code with more places than there is room for, those that come last are not known. */
	if (bounds_add_all(&b, c->code, function, ret))
		ret->rows[ret->code.nr_rows - 1].node = unknown;
}
