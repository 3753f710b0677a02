// SPDX-License-Identifier: Apache-2.0
/*
 * Whether what lay at an address is still there: bytecodes, compiled code and what
 * describes functions lie where nothing is freed or moved but by a collection of
 * the whole heap, which begins by counting itself (Heap::ms_count_, heap.h, raised
 * in Heap::MarkCompact). Where the value of a sample that was taken before they
 * were read is the one after it, they were the same all the while. What is read
 * while a collection goes on may still be of the epoch before: the engine counts
 * only readings behind the first sample of JavaScript in an epoch. Where each
 * version has the counter was read off processes that collect on request. Closures are moved and freed by smaller
 * collections, too: behind it lies the number of all collections (gc_count_).
 * Each isolate has a heap of its own, and a sample does not tell whose code runs:
 * with more than one, as of workers, epochs are not known. The list of isolates is
 * that of the code manager of WebAssembly (wasm-engine.h).
 */
#include <errno.h>

#include "runtime/v8.h"

/* The only isolate; 0: there are others. -EAGAIN: there is none yet. */
static int v8_epoch_isolate(const struct v8 *v, struct memory *m, uint64_t *ret)
{
	uint64_t manager, at, node[2]; /* next, isolate */

	*ret = 0;
	if (!v->wasm || !v8_row(v)->isolate_epoch)
		return 0;
	if (memory_u64(m, v->wasm, &manager))
		return -EFAULT;
	if (!manager)
		return -EAGAIN;
	if (memory_u64(m, manager + v8_row(v)->wasm.isolates, &at))
		return -EFAULT;
	if (!at)
		return -EAGAIN;
	if (memory_read(m, at, node, sizeof(node)))
		return -EFAULT;
	*ret = node[0] ? 0 : node[1];
	return 0;
}

static struct v8_epochs v8_epochs_of(uint64_t word)
{
	return (struct v8_epochs){.epoch = (uint32_t)word + 1ULL, .moved = (word >> 32) + 1};
}

int v8_epochs_now(const struct v8 *v, struct memory *m, struct v8_epochs *ret)
{
	uint64_t isolate, word;
	int err;

	*ret = (struct v8_epochs){0};
	if (!v->isolate)
		return 0;
	err = v8_epoch_isolate(v, m, &isolate);
	if (err || isolate != v->isolate)
		return err;
	if (memory_u64(m, isolate + v8_row(v)->isolate_epoch, &word))
		return -EFAULT;
	*ret = v8_epochs_of(word);
	return 0;
}

/*
 * A walk without frames: the counter is the root's word. As an isolate is no list, its first word is taken for an array that
 * ends before it begins.
 */
int v8_epoch_attach(struct v8 *v, struct memory *m, struct otp_walk *walk)
{
	struct v8_epochs now;
	int err = v8_epoch_isolate(v, m, &v->isolate);

	if (err == -EAGAIN)
		return err;
	if (err || !v->isolate || v8_epochs_now(v, m, &now)) {
		v->isolate = 0;
		return 0;
	}
	v->epoch = now.epoch;
	*walk = (struct otp_walk){.start = OTP_WALK_AT, .step = OTP_WALK_ARRAY, .base = v->isolate,
				  .root_off = (int32_t)v8_row(v)->isolate_epoch, .root_keep = 1, .frames_max = 1, .stride = 8,
				  .first = {.bias = 8}};
	return 0;
}

uint64_t v8_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct v8 *v = v8_of(a);

	if (!v->isolate)
		return 0;
	return nr_root ? v8_epochs_of(root[0]).epoch : v->epoch;
}

uint64_t v8_moved(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	return v8_of(a)->isolate && nr_root ? v8_epochs_of(root[0]).moved : 0;
}
