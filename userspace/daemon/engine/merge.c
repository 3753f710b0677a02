// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/merge.h"

#include "base/cleanup.h"
#include "runtime/runtime.h"

/* What is left of one runtime while the native stack is gone through. */
struct half {
	const struct merge_runtime *of;
	uint32_t next;	  /* frame */
	uint32_t entries_only; /* innermost entries of the loop that have no segment yet */
	uint32_t extra;	  /* innermost segments whose loop was not entered yet */
	bool misfit;
	bool is_short; /* its last segment is behind */
};

struct merging {
	const struct merge_in *in;
	struct half half[OTP_WALK_PLANS];
	struct merge_frame *to;
	uint32_t count;
};

static void merge_add(struct merging *m, uint32_t kind, uint32_t index)
{
	m->to[m->count++] = (struct merge_frame){.kind = kind, .index = index};
}

/* Neighbours in different functions of one loop are one entry: the loop, and what wraps it. */
static bool merge_is_same_entry(const struct merge_native *n, const struct merge_native *inner)
{
	return n->runtime == inner->runtime && n->function != inner->function && !inner->wraps;
}

static bool merge_is_entry(const struct merge_in *in, uint32_t i)
{
	const struct merge_native *n = &in->native[i];

	return n->runtime && !n->wraps && !(i && merge_is_same_entry(n, &in->native[i - 1]));
}

static uint32_t merge_count_entries(const struct merge_in *in, uint32_t runtime)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < in->nr_native; i++)
		n += in->native[i].runtime == runtime + 1 && merge_is_entry(in, i);
	return n;
}

/* Hidden frames behind the last entry are what the runtime keeps for a thread: no segment. */
static uint32_t merge_count_segments(const struct merge_runtime *r)
{
	uint32_t n = 0;
	bool shown = false;

	for (uint32_t i = 0; i < r->nr; i++) {
		shown |= !(r->flags[i] & RUNTIME_HIDDEN);
		n += !!(r->flags[i] & RUNTIME_ENTRY);
		shown &= !(r->flags[i] & RUNTIME_ENTRY);
	}
	return n + shown;
}

/* Two whole halves are laid against each other from the outermost on, others from the innermost. */
static void merge_align(struct merging *m, uint32_t runtime)
{
	struct half *h = &m->half[runtime];
	uint32_t entries = merge_count_entries(m->in, runtime), segments = merge_count_segments(h->of);

	if (!m->in->native_whole || !h->of->whole)
		return;
	h->entries_only = entries > segments ? entries - segments : 0;
	h->extra = segments > entries ? segments - entries : 0;
	h->misfit = h->entries_only > 1 || h->extra > 1;
}

static void merge_add_segment(struct merging *m, uint32_t runtime)
{
	struct half *h = &m->half[runtime];

	while (h->next < h->of->nr) {
		uint8_t flags = h->of->flags[h->next];

		if (!(flags & RUNTIME_HIDDEN))
			merge_add(m, MERGE_RUNTIME + runtime, h->next);
		h->next++;
		if (flags & RUNTIME_ENTRY)
			return;
	}
	if (!h->of->whole && !h->is_short)
		merge_add(m, MERGE_SHORT, 0);
	h->is_short = true;
}

static void merge_add_entry(struct merging *m, uint32_t i)
{
	uint32_t runtime = m->in->native[i].runtime - 1u;
	struct half *h = &m->half[runtime];

	if (h->entries_only || h->next == h->of->nr) {
		h->entries_only -= !!h->entries_only;
		merge_add(m, MERGE_NATIVE, i);
		return;
	}
	for (; h->extra; h->extra--)
		merge_add_segment(m, runtime);
	merge_add_segment(m, runtime);
	if (m->in->keep_loops)
		merge_add(m, MERGE_NATIVE, i);
}

/* A function that wraps the loop goes the way of the loop's frame before it. */
static void merge_add_wrapper(struct merging *m, uint32_t i)
{
	const struct merge_frame *last = m->count ? &m->to[m->count - 1] : NULL;

	if (m->in->keep_loops ||
	    (last && last->kind == MERGE_NATIVE && last->index + 1 == i && m->in->native[last->index].runtime))
		merge_add(m, MERGE_NATIVE, i);
}

static bool merge_is_bookkeeping(const struct half *h)
{
	for (uint32_t i = h->next; i < h->of->nr; i++)
		if (!(h->of->flags[i] & RUNTIME_HIDDEN))
			return false;
	return true;
}

/*
 * Segments for which the native stack has no loop: it was cut, or the halves do not fit. One of hidden frames alone is
 * what the runtime keeps for a thread that has not begun, or has ended.
 */
static void merge_add_rest(struct merging *m, uint32_t runtime)
{
	struct half *h = &m->half[runtime];

	if (!h->misfit && merge_is_bookkeeping(h))
		return;
	if (m->in->native_whole)
		h->misfit = true;
	if (h->misfit)
		merge_add(m, MERGE_MISFIT, 0);
	while (h->next < h->of->nr)
		merge_add_segment(m, runtime);
}

uint32_t merge(const struct merge_in *in, struct merge_frame *to, bool *ret_misfit)
{
	struct merging m = {.in = in, .to = to};

	/* Also of those without frames: native frames may be in their loops. */
	for (uint32_t r = 0; r < OTP_WALK_PLANS; r++) {
		m.half[r].of = &in->runtime[r];
		merge_align(&m, r);
	}
	for (uint32_t i = 0; i < in->nr_native; i++) {
		if (!in->native[i].runtime)
			merge_add(&m, MERGE_NATIVE, i);
		else if (merge_is_entry(in, i))
			merge_add_entry(&m, i);
		else
			merge_add_wrapper(&m, i);
	}
	if (!in->native_whole)
		merge_add(&m, MERGE_CUT, 0);
	*ret_misfit = false;
	for (uint32_t r = 0; r < OTP_WALK_PLANS; r++) {
		merge_add_rest(&m, r);
		*ret_misfit |= m.half[r].misfit;
	}
	return m.count;
}
