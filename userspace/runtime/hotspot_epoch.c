// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a method at an address is still the one that a sample met there. Its
 * memory is freed with its class, and the class after all frames that run it: a
 * counter that rises in between tells. Where the sample's value is the one after
 * the method was read, nothing was freed since the sample.
 *   - java.cls.unloadedClasses (OpenJDK, classLoadingService.cpp) rises by every
 *     class that is unloaded, before its loader's memory is given up
 *     (ClassLoaderDataGraph::do_unloading, then purge). It lies in the memory for
 *     jstat, whose form is perfMemory.hpp, 2.0, the same in 8 to 26.
 *   - Without that (-XX:-UsePerfData), the number of collections
 *     (CollectedHeap::_total_collections): every collection that unloads classes
 *     begins with a rise, but others rise it too. Names are then read again after
 *     each, and samples of just before one more often have none. The Concurrent
 *     Mark Sweep collector of 8 to 13 does not count its cycles: with it, and
 *     without the first counter, classes that it unloads go unnoticed.
 * Compiled code is given up more often: what was replaced, or not called for long, while its methods stay. Before other code
 * lies there, another counter rises, of which libjvm's static table tells:
 *   - CodeCache::_gc_epoch (20 and later, codeCache.cpp), when a collection begins to mark, and when it has marked. Code that
 *     it has not met is given up in between, but for collectors that do so as the program runs (Z, Shenandoah), which may go
 *     on longer. What a sample of the epoch has met is not given up in it all the same: its methods have noted the epoch of
 *     the last marking, at least, as they were entered or their frames were scanned (nmethod::is_maybe_on_stack). What was
 *     only read may be gone (RUNTIME_CODE_MAY_GO). Without the counter, regions of code hold by their age alone.
 *   - NMethodSweeper::_traversals (8 to 19, sweeper.cpp), when it begins to go through the code. What one traversal found to
 *     be on no stack, the next one gives up. Code of loops (OSR) of unloaded classes does not wait for that, so the sum of
 *     both counters is the epoch of code: it stays where both do. Such code is still there when its classes are counted, and
 *     goes later in that epoch; no sample of it has met the code, whose classes were dead. Of builds without that table,
 *     as Debian's 8, unloaded classes have to do: what else is given up is seen when the code is read again, a second later
 *     at most (by their age alone, 5 % of the samples of classes that come and go are unknown).
 * Classes that are redefined (JVMTI) keep their memory while frames run them; it
 * is given up with no rise, and the methods of a class of the same name come.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define PERF_MAGIC	0xc0c0feca /* as little-endian bytes: ca fe c0 c0 */
#define PERF_NAME	"java.cls.unloadedClasses"
#define PERF_ENTRIES	4096
#define PERF_BYTES	(1u << 20)

struct perf_prologue {
	uint32_t magic;
	uint8_t little_endian, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t modified;
	uint32_t entries_at, nr_entries;
};

struct perf_entry {
	uint32_t length, name_at, vector_length;
	uint8_t type, flags, units, variability;
	uint32_t data_at;
};

/* The offset of a counter's value in the memory at start; -ENOENT. */
static int perf_find(struct memory *m, uint64_t start, uint64_t *ret)
{
	struct perf_prologue p;
	struct perf_entry e;
	char name[sizeof(PERF_NAME)];
	uint64_t at;

	if (memory_read(m, start, &p, sizeof(p)) || p.magic != PERF_MAGIC || p.little_endian != 1 || p.major != 2)
		return -ENOENT;
	at = p.entries_at;
	for (uint32_t i = 0; i < MIN(p.nr_entries, (uint32_t)PERF_ENTRIES) && at < PERF_BYTES; i++, at += e.length) {
		if (memory_read(m, start + at, &e, sizeof(e)) || e.length < sizeof(e) || e.length > PERF_BYTES ||
		    e.name_at >= e.length || e.data_at > e.length - 8)
			return -ENOENT;
		if (memory_string(m, start + at + e.name_at, name, sizeof(name)) || strcmp(name, PERF_NAME) != 0)
			continue;
		*ret = at + e.data_at;
		return e.type == 'J' && !e.vector_length && *ret % 8 == 0 ? 0 : -ENOENT;
	}
	return -ENOENT;
}

/*
 * A walk without frames: the counter is the root's word. As the node is no list, its first word, which never changes,
 * is taken for an array that ends before it begins.
 */
static void hotspot_epoch_plan(uint64_t node, uint64_t at, struct otp_walk *walk)
{
	*walk = (struct otp_walk){.start = OTP_WALK_AT, .step = OTP_WALK_ARRAY, .base = node, .root_off = (int32_t)at,
				  .root_keep = 1, .frames_max = 1, .stride = 8, .first = {.bias = 8}};
}

/* The counter for code, and whether code that a sample of an epoch has not met may go in it. 0: there is none. */
static uint64_t hotspot_code_epoch_find(const struct runtime_file *file, struct memory *m, uint16_t *ret_may_go)
{
	static const char *const names[] = {"_ZN9CodeCache9_gc_epochE", "_ZN14NMethodSweeper11_traversalsE", "UseZGC",
					    "UseShenandoahGC"};
	struct runtime_symbol s[ARRAY_SIZE(names)];
	uint8_t used;

	runtime_static_symbols(file->binary, names, ARRAY_SIZE(names), s);
	*ret_may_go = !s[0].value;
	if (!s[0].value)
		return s[1].value ? file->bias + s[1].value : 0;
	for (size_t i = 2; i < ARRAY_SIZE(names); i++)
		if (s[i].value && (memory_u8(m, file->bias + s[i].value, &used) || used))
			*ret_may_go = 1;
	return file->bias + s[0].value;
}

static void hotspot_code_epoch_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h,
				      struct otp_walk *walk)
{
	h->code_epoch_at = hotspot_code_epoch_find(file, m, &h->code_may_go);
	if (h->code_epoch_at % 8 || hotspot_code_epoch_now(h, m, &h->code_epoch))
		h->code_epoch_at = 0;
	if (!h->code_epoch_at)
		h->code_may_go = 0; /* what a sample has met may go, too */
	walk->also.at = h->code_epoch_at;
}

void hotspot_epoch_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h, struct otp_walk *walk)
{
	uint64_t at, node = h->perf;

	h->epoch_at = h->code_epoch_at = 0;
	h->epoch_bytes = 8;
	if (!node || perf_find(m, node, &at)) {
		node = h->collected;
		at = h->heap_collections;
		h->epoch_bytes = 4;
		if (!node || at == HOTSPOT_NONE)
			return;
	}
	h->epoch_at = node + at;
	if (hotspot_epoch_now(h, m, &h->epoch)) {
		h->epoch_at = 0;
		return;
	}
	hotspot_epoch_plan(node, at & ~7ULL, walk);
	hotspot_code_epoch_attach(file, m, h, walk);
}

/* The counter's value in its aligned word; 0 stands for none. */
static uint64_t hotspot_epoch_of(const struct hotspot *h, uint64_t word)
{
	if (h->epoch_bytes == 8)
		return word + 1;
	return (word >> (8 * (h->epoch_at & 4)) & UINT32_MAX) + 1;
}

int hotspot_epoch_now(const struct hotspot *h, struct memory *m, uint64_t *ret)
{
	uint64_t word;

	*ret = 0;
	if (!h->epoch_at)
		return 0;
	if (memory_u64(m, h->epoch_at & ~7ULL, &word))
		return -EFAULT;
	*ret = hotspot_epoch_of(h, word);
	return 0;
}

uint64_t hotspot_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct hotspot *h = hotspot_of(a);

	if (!h->epoch_at)
		return 0;
	return nr_root ? hotspot_epoch_of(h, root[0]) : h->epoch;
}

static bool hotspot_code_goes_with_classes(const struct hotspot *h)
{
	return !h->code_epoch_at && h->version < HOTSPOT_GC_GIVES_UP_CODE;
}

/* Within a traversal, a sweeper gives up loops' code of unloaded classes: the sum stays where both counters do. */
static uint64_t hotspot_code_epoch_of(const struct hotspot *h, uint64_t counter, uint64_t epoch)
{
	return counter + 1 + (h->version < HOTSPOT_GC_GIVES_UP_CODE ? epoch : 0);
}

int hotspot_code_epoch_now(const struct hotspot *h, struct memory *m, uint64_t *ret)
{
	uint64_t counter, epoch;

	*ret = 0;
	if (hotspot_code_goes_with_classes(h))
		return hotspot_epoch_now(h, m, ret);
	if (!h->code_epoch_at)
		return 0;
	if (memory_u64(m, h->code_epoch_at, &counter) || hotspot_epoch_now(h, m, &epoch))
		return -EFAULT;
	*ret = hotspot_code_epoch_of(h, counter, epoch);
	return 0;
}

uint64_t hotspot_code_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct hotspot *h = hotspot_of(a);

	if (hotspot_code_goes_with_classes(h))
		return hotspot_epoch(a, root, nr_root);
	if (!h->code_epoch_at)
		return 0;
	return nr_root > 1 ? hotspot_code_epoch_of(h, root[1], hotspot_epoch_of(h, root[0])) : h->code_epoch;
}
