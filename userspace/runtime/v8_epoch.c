// SPDX-License-Identifier: Apache-2.0
/*
 * Whether what lay at an address is still there: bytecodes, compiled code and what
 * describes functions lie where nothing is freed or moved but by a collection of
 * the whole heap, which begins by counting itself (Heap::ms_count_, heap.h, raised
 * in Heap::MarkCompact). Where the value of a sample that was taken before they
 * were read is the one after it, they were the same all the while. What is read
 * while a collection goes on may still be of the epoch before: the engine counts
 * only readings behind the first sample of JavaScript in an epoch. Closures are
 * moved and freed by smaller collections, too: behind it lies the number of all
 * collections (gc_count_).
 * Each isolate, as of a worker, has a heap of its own, and counters. The walk follows the thread's current isolate
 * (Isolate::TryGetCurrent) to the counters, and to the number of the thread that is in it (ThreadLocalTop::thread_id_),
 * which V8 gives to each thread once: a worker that is made where another one lay has another number. By it a heap is
 * known (an embedder may make several on one thread, one after the other: the engine sees that an epoch falls). The
 * isolate is found in the list of the code manager of WebAssembly (wasm-engine.h). Where each version has the number in its
 * isolate, and counters in its heap, was read off processes that collect on request; where an isolate has its heap differs
 * between releases of a version, and is in the code of its interface.
 * Where a thread keeps its isolate cannot be found, as without its symbol, the only isolate's counter is copied; with more than
 * one, epochs are not known then, and time has to do.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/thread_key.h"
#include "runtime/thread_local.h"
#include "runtime/v8.h"

#define ISOLATES_MAX  256
#define HEAP_MAX      0x100000 /* of an Isolate, where its heap is */
#define WORD_COUNTERS 0 /* of the root's words */
#define WORD_THREAD   1

struct v8_list { uint64_t next, isolate; };

static int v8_list_read(const struct v8 *v, struct memory *m, uint64_t at, struct v8_list *ret)
{
	uint64_t node[3];
	int err = memory_read(m, at, node, sizeof(node));

	if (!err)
		*ret = (struct v8_list){.next = node[0], .isolate = node[v8_row(v)->wasm.isolate_key / 8 % ARRAY_SIZE(node)]};
	return err;
}

/* The first of the list. -EAGAIN: there is none yet. */
static int v8_isolates(const struct v8 *v, struct memory *m, struct v8_list *ret)
{
	uint64_t manager, at;

	*ret = (struct v8_list){0};
	if (memory_u64(m, v->wasm, &manager))
		return -EFAULT;
	if (!manager)
		return -EAGAIN;
	if (memory_u64(m, manager + v8_row(v)->wasm.isolates, &at))
		return -EFAULT;
	if (!at)
		return -EAGAIN;
	return v8_list_read(v, m, at, ret);
}

/* The only isolate; 0: there are others. */
static int v8_isolate_alone(const struct v8 *v, struct memory *m, uint64_t *ret)
{
	struct v8_list first;
	int err = v8_isolates(v, m, &first);

	*ret = err || first.next ? 0 : first.isolate;
	return err;
}

static int v8_isolate_heap(const struct v8 *v, struct memory *m, uint64_t isolate, uint32_t *ret)
{
	return memory_u32(m, isolate + v8_row(v)->isolate_thread, ret);
}

/* 0: it has ended, or two are of one thread. */
static int v8_isolate_of(const struct v8 *v, struct memory *m, uint32_t heap, uint64_t *ret)
{
	struct v8_list at;
	int err = v8_isolates(v, m, &at);
	uint32_t of, nr = 0;

	*ret = 0;
	for (uint32_t i = 0; !err && i < ISOLATES_MAX; i++) {
		err = v8_isolate_heap(v, m, at.isolate, &of);
		if (!err && of == heap) {
			*ret = at.isolate;
			nr++;
		}
		if (!at.next)
			break;
		err = err ? err : v8_list_read(v, m, at.next, &at);
	}
	*ret = nr == 1 ? *ret : 0;
	return err == -EAGAIN ? 0 : err;
}

int v8_isolate_copy(const struct v8 *v, struct memory *m, uint64_t pc, uint64_t *ret)
{
	struct v8_list at;
	uint64_t start;
	int err = v->isolate_builtins ? v8_isolates(v, m, &at) : -ENOENT;

	for (uint32_t i = 0; !err && i < ISOLATES_MAX; i++) {
		if (memory_u64(m, at.isolate + v->isolate_builtins, &start) == 0 && pc >= start &&
		    pc - start < v->builtins_end - v->builtins) {
			*ret = start - v->builtins;
			return 0;
		}
		err = at.next ? v8_list_read(v, m, at.next, &at) : -ENOENT;
	}
	return -ENOENT;
}

static struct v8_epochs v8_epochs_of(uint32_t heap, uint64_t counters)
{
	const uint64_t high = (uint64_t)heap << 32;

	return (struct v8_epochs){.epoch = high | ((uint32_t)counters + 1U), .moved = high | (uint32_t)((counters >> 32) + 1)};
}

static int v8_epochs_read(const struct v8 *v, struct memory *m, uint64_t isolate, struct v8_epochs *ret)
{
	uint64_t counters;
	uint32_t heap;

	if (memory_u64(m, isolate + v->isolate_epoch, &counters) || v8_isolate_heap(v, m, isolate, &heap))
		return -EFAULT;
	*ret = v8_epochs_of(heap, counters);
	ret->isolate = isolate;
	return 0;
}

int v8_epochs_now(const struct v8 *v, struct memory *m, uint32_t heap, struct v8_epochs *ret)
{
	uint64_t isolate;
	int err;

	*ret = (struct v8_epochs){0};
	if (!v->has_epochs)
		return 0;
	err = heap && !v->isolate ? v8_isolate_of(v, m, heap, &isolate) : v8_isolate_alone(v, m, &isolate);
	if (err || !isolate || (v->isolate && isolate != v->isolate))
		return err;
	return v8_epochs_read(v, m, isolate, ret);
}

/* A walk without frames that mean anything: the isolate, whose first word is 0, as pointers are not compressed. */
static void v8_epoch_plan(const struct v8 *v, struct otp_walk *walk)
{
	walk->step = OTP_WALK_LINK;
	walk->root_at = walk->nr_chain;
	walk->root_off = (int32_t)v->isolate_epoch;
	walk->root_keep = 1;
	walk->frames_max = 1;
	walk->via = V8_ISOLATE_SELF;
	walk->via_at = (int16_t)v8_row(v)->isolate_thread;
}

static int v8_epoch_by_key(const struct runtime_file *file, struct memory *m, struct otp_walk *ret)
{
	uint64_t at;
	uint32_t key;

	if (runtime_address(file, "_ZN2v88internal7Isolate12isolate_key_E", &at) || memory_u32(m, at, &key))
		return -ENOENT;
	return thread_key_chain(file, m, key, ret);
}

void v8_epoch_chain(const struct v8 *v, const struct runtime_file *file, struct memory *m, struct otp_walk *ret)
{
	int err;

	*ret = (struct otp_walk){0};
	if (v8_row(v)->hidden)
		return;
	if (v8_row(v)->major < 11)
		err = v8_epoch_by_key(file, m, ret);
	else
		err = thread_local_chain(file, m, "_ZN2v88internal18g_current_isolate_E", ret);
	if (err)
		*ret = (struct otp_walk){0};
}

/* Where an Isolate has its heap: lea n(%rdi),%reg is the first that GetHeapStatistics, of V8's interface, does with it. */
uint64_t v8_epoch_find(const struct v8 *v, const struct runtime_file *file, struct memory *m)
{
	uint8_t code[64];
	uint32_t heap;
	uint64_t at;

	if (v8_row(v)->hidden)
		return v8_row(v)->isolate_heap + v8_row(v)->heap_epoch;
	if (runtime_address(file, "_ZN2v87Isolate17GetHeapStatisticsEPNS_14HeapStatisticsE", &at) ||
	    memory_read(m, at, code, sizeof(code)))
		return 0;
	for (size_t i = 0; i + 3 + sizeof(heap) <= sizeof(code); i++) {
		if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d || (code[i + 2] & 0xc7) != 0x87)
			continue;
		memcpy(&heap, code + i + 3, sizeof(heap));
		return heap % 8 == 0 && heap < HEAP_MAX ? heap + v8_row(v)->heap_epoch : 0;
	}
	return 0;
}

/* Whether a Heap is where it is taken to be: with another word in the counter's place, names would be those of former functions. */
static bool v8_epoch_is_there(const struct v8 *v, struct memory *m)
{
	const struct v8_row *row = v8_row(v);
	struct v8_list first;
	uint64_t isolate;

	return v8_isolates(v, m, &first) == 0 &&
	       memory_u64(m, first.isolate + v->isolate_epoch - row->heap_epoch + row->heap_isolate, &isolate) == 0 &&
	       isolate == first.isolate;
}

int v8_epoch_attach(struct v8 *v, struct memory *m, struct otp_walk *walk)
{
	struct v8_epochs now;
	uint64_t alone;
	int err;

	v->has_epochs = v->wasm && v->isolate_epoch;
	err = v->has_epochs ? v8_isolate_alone(v, m, &alone) : 0;
	if (err == -EAGAIN)
		return err;
	v->has_epochs = v->has_epochs && v8_epoch_is_there(v, m);
	if (!err && v->has_epochs && walk->start == OTP_WALK_NONE) {
		walk->start = OTP_WALK_AT;
		walk->base = v->isolate = alone;
		v->has_epochs = alone;
	}
	if (err || !v->has_epochs || v8_epochs_now(v, m, 0, &now)) {
		v->has_epochs = v->isolate = 0;
		*walk = (struct otp_walk){0};
		return 0;
	}
	v->epoch = now.epoch;
	v8_epoch_plan(v, walk);
	return 0;
}

static struct v8_epochs v8_epochs_walked(const uint64_t *root, uint32_t nr_root)
{
	const uint32_t heap = nr_root > WORD_THREAD ? (uint32_t)root[WORD_THREAD] : 0;

	return heap ? v8_epochs_of(heap, root[WORD_COUNTERS]) : (struct v8_epochs){0};
}

uint64_t v8_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct v8 *v = v8_of(a);

	if (!v->has_epochs)
		return 0;
	return nr_root ? v8_epochs_walked(root, nr_root).epoch : v->epoch;
}

uint64_t v8_moved(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	return v8_of(a)->has_epochs ? v8_epochs_walked(root, nr_root).moved : 0;
}
