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
	bool by_stack;	  /* coroutines are laid one by one */
	uint32_t resumes_only; /* so many of the innermost coroutines have no frames: not yet, any more, or unseen ones */
	uint32_t stack_end;    /* behind the frames of the coroutine at hand */
	uint32_t entries_left; /* of one with more segments than entries, up to the one that takes the rest; 0: it has not */
	bool unlaid; /* no loop has a segment */
	bool misfit;
	bool is_short; /* its last segment is behind */
};

struct merging {
	const struct merge_in *in;
	struct half half[OTP_WALK_PLANS];
	struct merge_frame *to;
	uint32_t count;
	uint32_t native_end; /* in to: behind the last native frame, and what has a place among those */
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

/* From a native frame up to another, or to the end. */
static uint32_t merge_count_entries(const struct merge_in *in, uint32_t runtime, uint32_t from, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t i = from; i < end; i++)
		n += in->native[i].runtime == runtime + 1 && merge_is_entry(in, i);
	return n;
}

/* The native frame that resumed the coroutine in which this one is. */
static uint32_t merge_find_resumer(const struct merge_in *in, uint32_t runtime, uint32_t i)
{
	while (i < in->nr_native && in->native[i].resumes != runtime + 1)
		i++;
	return i;
}

static uint32_t merge_count_resumers(const struct merge_in *in, uint32_t runtime)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < in->nr_native; i++)
		n += in->native[i].resumes == runtime + 1;
	return n;
}

/* Behind the outermost frame of the coroutine in which this one is. */
static uint32_t merge_find_stack_end(const struct merge_runtime *r, uint32_t i)
{
	while (i < r->nr && !(r->flags[i] & RUNTIME_STACK))
		i++;
	return i < r->nr ? i + 1 : i;
}

static uint32_t merge_count_stacks(const struct merge_runtime *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nr; i++)
		n += !!(r->flags[i] & RUNTIME_STACK);
	return n;
}

/*
 * What is left after the last entry is one too, if the list ends there. Hidden frames there are none: a stack begins with
 * such, and runtimes keep such for a thread.
 */
static uint32_t merge_count_segments(const struct merge_runtime *r, uint32_t from, uint32_t end)
{
	bool shown = false;
	uint32_t n = 0;

	for (uint32_t i = from; i < end; i++) {
		shown |= !(r->flags[i] & RUNTIME_HIDDEN);
		n += !!(r->flags[i] & RUNTIME_ENTRY);
		shown &= !(r->flags[i] & RUNTIME_ENTRY);
	}
	return n + (shown && end == r->nr);
}

/* Two whole halves are laid against each other from the outermost on, others from the innermost. */
static void merge_align_rest(struct merging *m, uint32_t runtime, uint32_t from)
{
	struct half *h = &m->half[runtime];
	uint32_t entries = merge_count_entries(m->in, runtime, from, m->in->nr_native);
	uint32_t segments = merge_count_segments(h->of, h->next, h->of->nr);

	if (!m->in->native_whole || !h->of->whole)
		return;
	h->entries_only = entries > segments ? entries - segments : 0;
	h->extra = segments > entries ? segments - entries : 0;
	/* A host may call a main thread in a way that no walk sees: then all of its loops stay. */
	h->misfit = (h->entries_only > 1 && (segments || !from)) || h->extra > 1;
}

/* The coroutine whose native frames begin at this one. */
static void merge_align_stack(struct merging *m, uint32_t runtime, uint32_t from)
{
	struct half *h = &m->half[runtime];
	uint32_t resumer = merge_find_resumer(m->in, runtime, from), entries, segments;

	if (resumer == m->in->nr_native) {
		merge_align_rest(m, runtime, from);
		return;
	}
	h->stack_end = merge_find_stack_end(h->of, h->next);
	entries = merge_count_entries(m->in, runtime, from, resumer);
	segments = merge_count_segments(h->of, h->next, h->stack_end);
	h->entries_only = entries > segments ? entries - segments : 0;
	h->entries_left = segments > entries ? entries : 0;
}

/* Whether the innermost coroutine was resumed just now, and has no frames: it has no loop, but the main thread has. */
static bool merge_is_resuming(const struct merge_in *in, uint32_t runtime)
{
	uint32_t first = merge_find_resumer(in, runtime, 0), last = first;

	for (uint32_t i = first; i < in->nr_native; i = merge_find_resumer(in, runtime, i + 1))
		last = i;
	return !merge_count_entries(in, runtime, 0, first) && merge_count_entries(in, runtime, last, in->nr_native);
}

static bool merge_is_bookkeeping(const struct half *h)
{
	for (uint32_t i = h->next; i < h->of->nr; i++)
		if (!(h->of->flags[i] & RUNTIME_HIDDEN))
			return false;
	return true;
}

/*
 * Whether one that was resumed may have no frames here: each that resumes is of one, and there is who resumed first.
 * Behind a cut there may be further ones.
 */
static bool merge_misses_stack(const struct merge_in *in, uint32_t runtime, uint32_t resumers, uint32_t stacks)
{
	return in->runtime[runtime].unseen && (!in->native_whole || (resumers && stacks != resumers + 1));
}

/* Nobody knows which ones have frames, but for the main thread: it is beyond all that resumes. */
static void merge_align_main(struct merging *m, uint32_t runtime, uint32_t resumers, uint32_t stacks)
{
	struct half *h = &m->half[runtime];
	bool main = stacks == 1 && h->of->flags[h->of->nr - 1] & RUNTIME_MAIN;

	h->unlaid = !main || !m->in->native_whole;
	h->misfit = !main && !merge_is_bookkeeping(h);
	h->by_stack = !h->unlaid;
	h->resumes_only = h->unlaid ? 0 : resumers;
}

/* Coroutines count if there are as many in both halves. A host resumes them from no main thread. */
static void merge_align(struct merging *m, uint32_t runtime)
{
	struct half *h = &m->half[runtime];
	uint32_t resumers = merge_count_resumers(m->in, runtime), stacks = merge_count_stacks(h->of);
	bool whole = m->in->native_whole && h->of->whole;

	if (merge_misses_stack(m->in, runtime, resumers, stacks)) {
		merge_align_main(m, runtime, resumers, stacks);
		return;
	}
	h->by_stack = resumers && (whole ? stacks == resumers + 1 || stacks == resumers : stacks > 0);
	h->resumes_only = whole && h->by_stack && stacks == resumers && merge_is_resuming(m->in, runtime);
	if (!h->by_stack)
		merge_align_rest(m, runtime, 0);
	else if (!h->resumes_only)
		merge_align_stack(m, runtime, 0);
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

/* All that is left of a coroutine. */
static void merge_add_stack(struct merging *m, uint32_t runtime)
{
	struct half *h = &m->half[runtime];

	for (; h->next < h->stack_end; h->next++)
		if (!(h->of->flags[h->next] & RUNTIME_HIDDEN))
			merge_add(m, MERGE_RUNTIME + runtime, h->next);
}

static void merge_add_resumer(struct merging *m, uint32_t i)
{
	uint32_t runtime = m->in->native[i].resumes - 1u;
	struct half *h = &m->half[runtime];

	if (h->by_stack && h->resumes_only)
		h->resumes_only--;
	else if (h->by_stack)
		merge_add_stack(m, runtime);
	if (h->by_stack && !h->resumes_only)
		merge_align_stack(m, runtime, i + 1);
	merge_add(m, MERGE_NATIVE, i);
}

static void merge_add_entry(struct merging *m, uint32_t i)
{
	uint32_t runtime = m->in->native[i].runtime - 1u;
	struct half *h = &m->half[runtime];

	if (h->unlaid || h->entries_only || h->resumes_only || h->next == h->of->nr) {
		h->entries_only -= !!h->entries_only;
		merge_add(m, MERGE_NATIVE, i);
		return;
	}
	for (; h->extra; h->extra--)
		merge_add_segment(m, runtime);
	merge_add_segment(m, runtime);
	if (h->entries_left && !--h->entries_left)
		merge_add_stack(m, runtime);
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

/*
 * Segments for which the native stack has no loop: it was cut, or the halves do not fit. One of hidden frames alone is
 * what the runtime keeps for a thread that has not begun, or has ended. Behind a cut, nobody knows which of two runtimes
 * has called the other.
 */
static void merge_add_rest(struct merging *m, uint32_t runtime)
{
	struct half *h = &m->half[runtime];

	if (!h->misfit && merge_is_bookkeeping(h))
		return;
	if (m->in->native_whole || m->count > m->native_end)
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
		if (in->native[i].resumes)
			merge_add_resumer(&m, i);
		else if (!in->native[i].runtime)
			merge_add(&m, MERGE_NATIVE, i);
		else if (merge_is_entry(in, i))
			merge_add_entry(&m, i);
		else
			merge_add_wrapper(&m, i);
	}
	if (!in->native_whole)
		merge_add(&m, MERGE_CUT, 0);
	m.native_end = m.count;
	*ret_misfit = false;
	for (uint32_t r = 0; r < OTP_WALK_PLANS; r++) {
		merge_add_rest(&m, r);
		*ret_misfit |= m.half[r].misfit;
	}
	return m.count;
}
