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
 * Classes that are redefined (JVMTI) stay, but their former methods are given up as soon as no frame runs them, and methods of
 * any class come to lie there. VM_RedefineClasses::_id_counter (jvmtiRedefineClasses.cpp, of 15 and later) rises before that:
 * the sum of it and of the first counter is the epoch of methods. Without it, as in 8 and 11 and in builds without a static
 * table, a frame whose bytecode is not in the method that was read (is_bounded in runtime.h) has no name, and is asked for
 * again after a second; a method whose bytecodes lie where those of the former one lay has that one's name.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define PERF_MAGIC	0xc0c0feca /* as little-endian bytes: ca fe c0 c0 */
#define PERF_NAME	"java.cls.unloadedClasses"
#define PERF_ENTRIES	4096
#define PERF_BYTES	(1u << 20)
#define GC_EPOCH_FIRST	2 /* codeCache.cpp: before any collection */

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

/* Variables by libjvm's static table. */
enum { GC_EPOCH, TRAVERSALS, USES_Z, USES_SHENANDOAH, REDEFINITIONS, VARIABLES };
static const char *const variables[VARIABLES] = {
	"_ZN9CodeCache9_gc_epochE", "_ZN14NMethodSweeper11_traversalsE", "UseZGC", "UseShenandoahGC",
	"_ZN18VM_RedefineClasses11_id_counterE",
};

/* Whether code that a sample of an epoch has not met may go in it. */
static bool hotspot_code_may_go(const struct runtime_file *file, struct memory *m, const struct runtime_symbol *s)
{
	uint8_t used;

	if (!s[GC_EPOCH].value)
		return true;
	for (size_t i = USES_Z; i <= USES_SHENANDOAH; i++)
		if (s[i].value && (memory_u8(m, file->bias + s[i].value, &used) || used))
			return true;
	return false;
}

/* Where a counter lies; 0: there is none, or it cannot be read. */
static uint64_t hotspot_counter(const struct runtime_file *file, struct memory *m, const struct runtime_symbol *s)
{
	uint64_t at = s->value ? file->bias + s->value : 0, word;

	return at && at % 8 == 0 && memory_u64(m, at, &word) == 0 ? at : 0;
}

static void hotspot_counters_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h)
{
	struct runtime_symbol s[VARIABLES];

	runtime_static_symbols(file->binary, variables, VARIABLES, s);
	h->code_epoch_at = hotspot_counter(file, m, &s[s[GC_EPOCH].value ? GC_EPOCH : TRAVERSALS]);
	/* Without it, what a sample has met may go, too. */
	h->code_may_go = h->code_epoch_at && hotspot_code_may_go(file, m, s);
	h->redefined_at = hotspot_counter(file, m, &s[REDEFINITIONS]);
}

/* --- what counters say --- */

struct hotspot_counters {
	uint64_t classes, code, redefined; /* 0: there is none; OTP_WALK_UNREAD: a sample's that could not be read */
};

/* The counter of classes in its aligned word; 0 stands for none. */
static uint64_t hotspot_classes_of(const struct hotspot *h, uint64_t word)
{
	if (h->epoch_bytes == 8)
		return word + 1;
	return (word >> (8 * (h->epoch_at & 4)) & UINT32_MAX) + 1;
}

/* Those of methods. */
static int hotspot_counters_now(const struct hotspot *h, struct memory *m, struct hotspot_counters *ret)
{
	uint64_t word;

	memset(ret, 0, sizeof(*ret));
	if (!h->epoch_at)
		return 0;
	if (memory_u64(m, h->epoch_at & ~7ULL, &word) || (h->redefined_at && memory_u64(m, h->redefined_at, &ret->redefined)))
		return -EFAULT;
	ret->classes = hotspot_classes_of(h, word);
	return 0;
}

/* Of a sample. false: its walk was not there yet. */
static bool hotspot_counters_of(const struct hotspot *h, const uint64_t *root, uint32_t nr_root, struct hotspot_counters *ret)
{
	uint32_t used = 1;

	memset(ret, 0, sizeof(*ret));
	if (nr_root < 1U + !!h->code_epoch_at + !!h->redefined_at)
		return false;
	ret->classes = hotspot_classes_of(h, root[0]);
	if (h->code_epoch_at)
		ret->code = root[used++];
	if (h->redefined_at)
		ret->redefined = root[used];
	return true;
}

static uint64_t hotspot_epoch_of_methods(const struct hotspot_counters *c)
{
	return c->redefined == OTP_WALK_UNREAD ? 0 : c->classes + c->redefined;
}

/* Within a traversal, a sweeper gives up loops' code of unloaded classes: the sum stays where both counters do. */
static uint64_t hotspot_epoch_of_code(const struct hotspot *h, const struct hotspot_counters *c)
{
	if (c->code == OTP_WALK_UNREAD)
		return 0;
	if (h->version < HOTSPOT_GC_GIVES_UP_CODE)
		return c->classes + (h->code_epoch_at ? c->code : 0);
	return h->code_epoch_at && c->code >= GC_EPOCH_FIRST ? c->code - GC_EPOCH_FIRST + 1 : 0;
}

int hotspot_epoch_now(const struct hotspot *h, struct memory *m, uint64_t *ret)
{
	struct hotspot_counters c;
	int err = hotspot_counters_now(h, m, &c);

	*ret = hotspot_epoch_of_methods(&c);
	return err;
}

int hotspot_epochs_now(const struct hotspot *h, struct memory *m, uint64_t *ret_methods, uint64_t *ret_code)
{
	struct hotspot_counters c;

	if (hotspot_counters_now(h, m, &c) || (h->code_epoch_at && memory_u64(m, h->code_epoch_at, &c.code)))
		return -EFAULT;
	*ret_methods = hotspot_epoch_of_methods(&c);
	*ret_code = hotspot_epoch_of_code(h, &c);
	return 0;
}

uint64_t hotspot_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct hotspot *h = hotspot_of(a);
	struct hotspot_counters c;

	if (!h->epoch_at)
		return 0;
	return hotspot_counters_of(h, root, nr_root, &c) ? hotspot_epoch_of_methods(&c) : h->epoch;
}

uint64_t hotspot_code_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct hotspot *h = hotspot_of(a);
	struct hotspot_counters c;

	if (!h->epoch_at)
		return 0;
	return hotspot_counters_of(h, root, nr_root, &c) ? hotspot_epoch_of_code(h, &c) : h->code_epoch;
}

/* --- to find them --- */

/*
 * A walk without frames: the first counter is the root's word, the others are words from elsewhere. As the node is no list,
 * its first word, which never changes, is taken for an array that ends before it begins.
 */
static void hotspot_epoch_plan(const struct hotspot *h, uint64_t node, uint64_t at, struct otp_walk *walk)
{
	*walk = (struct otp_walk){.start = OTP_WALK_AT, .step = OTP_WALK_ARRAY, .base = node, .root_off = (int32_t)at,
				  .root_keep = 1, .frames_max = 1, .stride = 8, .first = {.bias = 8},
				  .also.at = {h->code_epoch_at, h->redefined_at}};
}

/* The first counter, from a node on: that of unloaded classes, else of collections. */
static int hotspot_classes_attach(struct memory *m, struct hotspot *h, uint64_t *ret_node, uint64_t *ret_at)
{
	h->epoch_bytes = 8;
	*ret_node = h->perf;
	if (*ret_node && perf_find(m, *ret_node, ret_at) == 0)
		return 0;
	h->epoch_bytes = 4;
	*ret_node = h->collected;
	*ret_at = h->heap_collections;
	return *ret_node && h->heap_collections != HOTSPOT_NONE ? 0 : -ENOENT;
}

void hotspot_epoch_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h, struct otp_walk *walk)
{
	uint64_t at, node;

	h->epoch_at = h->code_epoch_at = h->redefined_at = 0;
	if (hotspot_classes_attach(m, h, &node, &at))
		return;
	h->epoch_at = node + at;
	hotspot_counters_attach(file, m, h);
	if (hotspot_epochs_now(h, m, &h->epoch, &h->code_epoch)) {
		h->epoch_at = h->code_epoch_at = h->redefined_at = 0;
		return;
	}
	hotspot_epoch_plan(h, node, at & ~7ULL, walk);
}
