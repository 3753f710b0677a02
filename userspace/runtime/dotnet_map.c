// SPDX-License-Identifier: Apache-2.0
/*
 * Which range of code lies at an address, by a map of five levels (dotnet/runtime,
 * src/coreclr/vm/codeman.h: RangeSectionMap), and where in a heap of code a
 * method begins, by a nibble for each 32 bytes (nibblemapmacros.h).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define LEVELS	      5
#define LEVEL_BITS    8
#define LEAF_BITS     17 /* of an address: within one entry of the last level */
#define FRAGMENTS_MAX 1024
#define MARK	      1ULL /* of a pointer to what may be unloaded */

#define HEAP_MAP_BASE 32 /* of a HeapList */
#define HEAP_MAP      40
#define HEAP_END      24

#define WORD_BYTES    256u /* of code, for the 8 nibbles of a word */
#define WORDS_MAX     (1u << 16) /* back from an address: a method has 16 MiB at most */
#define NEAR_WORDS    16u

/* --- ranges --- */

static int dotnet_level_find(struct memory *m, uint64_t map, uint64_t pc, uint64_t *ret)
{
	*ret = map;
	for (unsigned level = LEVELS; level-- > 0;) {
		uint64_t index = pc >> (LEAF_BITS + LEVEL_BITS * level) & ((1u << LEVEL_BITS) - 1);

		if (memory_u64(m, *ret + 8 * index, ret))
			return -EFAULT;
		*ret &= ~MARK;
		if (!*ret)
			return -ENOENT;
	}
	return 0;
}

/* struct RangeSection; fragment: the next one, begin, end, section. */
static int dotnet_section_read(struct memory *m, const uint64_t fragment[4], struct dotnet_range *ret)
{
	uint64_t section[7];

	if (memory_read(m, fragment[3], section, sizeof(section)))
		return -EFAULT;
	*ret = (struct dotnet_range){.start = section[0], .end = section[1], .section = fragment[3],
				     .flags = (uint32_t)section[2], .module = section[4], .heap = section[5],
				     .stubs = section[6]};
	return ret->end > ret->start ? 0 : -EBADMSG;
}

int dotnet_range_find(const struct dotnet *d, struct memory *m, uint64_t pc, struct dotnet_range *ret)
{
	uint64_t at, fragment[4];
	int err = dotnet_level_find(m, d->code_map, pc, &at);

	for (unsigned i = 0; !err && i < FRAGMENTS_MAX && at; i++) {
		if (memory_read(m, at, fragment, sizeof(fragment)))
			return -EFAULT;
		if (pc >= fragment[1] && pc < fragment[2])
			return dotnet_section_read(m, fragment, ret);
		at = fragment[0] & ~MARK;
	}
	return err ? err : -ENOENT;
}

/* --- heaps of code --- */

struct dotnet_nibbles { struct memory *memory; uint64_t base, map; };

static int dotnet_nibbles_open(struct memory *m, const struct dotnet_range *range, struct dotnet_nibbles *ret)
{
	ret->memory = m;
	return memory_u64(m, range->heap + HEAP_MAP_BASE, &ret->base) || memory_u64(m, range->heap + HEAP_MAP, &ret->map) ?
		       -EFAULT : 0;
}

/* Since 10, a word that lies within a method is the way to its begin. */
static bool dotnet_word_is_pointer(uint32_t word)
{
	return (word & 0xf) > 8;
}

static uint64_t dotnet_word_pointer(uint32_t word)
{
	return (word & ~0xfu) + (((word & 0xf) - 9) << 2);
}

/* The last method that begins in the buckets of a word before limit, which is a bucket's offset with units of 4 bytes. */
static bool dotnet_word_last(uint32_t word, uint32_t limit, uint32_t *ret)
{
	for (unsigned i = WORD_BYTES / DOTNET_BUCKET; i-- > 0;) {
		uint32_t nibble = word >> (28 - 4 * i) & 0xf;

		*ret = i * DOTNET_BUCKET + (nibble - 1) * 4;
		if (nibble && nibble <= 8 && *ret <= limit)
			return true;
	}
	return false;
}

int dotnet_heap_find(struct memory *m, const struct dotnet_range *range, uint64_t pc, uint64_t *ret_start)
{
	struct dotnet_nibbles n;
	uint32_t word, in, limit;
	uint64_t index;

	if (dotnet_nibbles_open(m, range, &n))
		return -EFAULT;
	if (pc < n.base)
		return -ENOENT;
	index = (pc - n.base) / WORD_BYTES;
	limit = (uint32_t)((pc - n.base) % WORD_BYTES);
	for (uint32_t i = 0; i < WORDS_MAX && i <= index; i++, limit = WORD_BYTES) {
		/* Those before a method that is long are zeros. */
		if (memory_u32(m, n.map + 4 * (index - i), &word))
			return -EFAULT;
		if (word && dotnet_word_is_pointer(word)) {
			*ret_start = n.base + dotnet_word_pointer(word);
			return *ret_start <= pc ? 0 : -EBADMSG;
		}
		if (word && dotnet_word_last(word, limit, &in)) {
			*ret_start = n.base + (index - i) * WORD_BYTES + in;
			return 0;
		}
	}
	return -ENOENT;
}

int dotnet_heap_next(struct memory *m, const struct dotnet_range *range, uint64_t start, uint64_t *ret)
{
	struct dotnet_nibbles n;
	uint32_t word, in;
	uint64_t index, end, first;

	if (dotnet_nibbles_open(m, range, &n) || memory_u64(m, range->heap + HEAP_END, &end))
		return -EFAULT;
	if (start < n.base)
		return -EBADMSG;
	index = (start - n.base) / WORD_BYTES;
	/* Other code will lie behind the last one. */
	end = MIN(end, range->end);
	*ret = MIN(n.base + (index + NEAR_WORDS) * WORD_BYTES, end);
	for (uint64_t i = index; i < index + NEAR_WORDS; i++) {
		if (memory_u32(m, n.map + 4 * i, &word))
			return -EFAULT;
		if (!word || dotnet_word_is_pointer(word))
			continue;
		for (uint32_t bucket = 0; bucket < WORD_BYTES / DOTNET_BUCKET; bucket++) {
			first = n.base + i * WORD_BYTES;
			if (!dotnet_word_last(word & ~0u << (28 - 4 * bucket), WORD_BYTES, &in) || first + in <= start)
				continue;
			*ret = MIN(first + in, end);
			return 0;
		}
	}
	return 0;
}
