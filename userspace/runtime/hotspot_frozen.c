// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of a virtual thread that lie in the heap (OpenJDK 21 and later,
 * continuationFreezeThaw.cpp, stackChunkOop.hpp, continuationEntry.hpp). A
 * virtual thread that waits leaves its frames in chunks, objects that hold a
 * piece of stack; when it goes on, a few frames are copied back, and the
 * outermost of these returns to a barrier, which copies the next.
 *
 * A walk copies the chunks in the tick, while they are what the thread will
 * return to: JavaThread, by the key of its thread -> ContinuationEntry, on the
 * thread's stack -> Continuation -> StackChunks. Nobody else changes a chunk but
 * a collection, which moves it: the words of what is copied must agree with each
 * other, or the barrier is shown. While the thread puts frames into a chunk, they
 * are on its stack too, and its anchor, from which HotSpot itself begins to walk a
 * stack, is the entry (FreezeBase::unwind_frames): what is in the chunk is not
 * those frames' callers then, be it that the thread waits in Continuation.doYield,
 * or at a monitor (24 and later). Collectors that move objects as the thread runs
 * (Z, Shenandoah) leave chunks that are out of date where a stale pointer leads:
 * with these nothing is copied.
 *
 * In a chunk, return addresses are as on the stack, that of the outermost frame
 * is 0, and frame pointers are distances in words from where they are saved, where
 * an interpreted frame has one.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"
#include "runtime/thread_key.h"

#define ENTRY_OWNER	 16 /* ContinuationEntry: _cont, behind _pd and _parent (x86-64) */
#define ENTRY_ARGUMENTS	 2064 /* bytes between it and the frame below: 255 arguments, aligned */
#define SINCE		 21
#define OFFSET_MAX	 0x4000

/* libjvm's own variables, which are in its static table alone. */
enum {
	V_KEY, V_BARRIER, V_RETURN, V_TAIL, V_PARENT, V_SIZE, V_SP, V_BOTTOM, V_PC, V_OWNER, V_STACK, V_COMPRESSED, V_Z,
	V_NEEDED, V_SHENANDOAH = V_NEEDED, V_NARROW, V_BASE, V_SHIFT, V_NR
};
static const char *const variables[V_NR] = {
	[V_KEY] = "_ZL11_thread_key",
	[V_BARRIER] = "_ZN12StubRoutines19_cont_returnBarrierE",
	[V_RETURN] = "_ZN17ContinuationEntry10_return_pcE",
	[V_TAIL] = "_ZN28jdk_internal_vm_Continuation12_tail_offsetE",
	[V_PARENT] = "_ZN26jdk_internal_vm_StackChunk14_parent_offsetE",
	[V_SIZE] = "_ZN26jdk_internal_vm_StackChunk12_size_offsetE",
	[V_SP] = "_ZN26jdk_internal_vm_StackChunk10_sp_offsetE",
	[V_BOTTOM] = "_ZN26jdk_internal_vm_StackChunk14_bottom_offsetE",
	[V_PC] = "_ZN26jdk_internal_vm_StackChunk10_pc_offsetE",
	[V_OWNER] = "_ZN26jdk_internal_vm_StackChunk12_cont_offsetE",
	[V_STACK] = "_ZN23InstanceStackChunkKlass16_offset_of_stackE",
	[V_COMPRESSED] = "UseCompressedOops",
	[V_Z] = "UseZGC",
	[V_SHENANDOAH] = "UseShenandoahGC", /* of builds that have it */
	[V_NARROW] = "_ZN14CompressedOops11_narrow_oopE", /* up to 24: base and shift */
	[V_BASE] = "_ZN14CompressedOops5_baseE",
	[V_SHIFT] = "_ZN14CompressedOops6_shiftE",
};

struct frozen {
	const struct runtime_file *file;
	struct memory *memory;
	struct runtime_symbol symbol[V_NR]; /* value 0: it has none */
	uint64_t value[V_NR];
};

/* --- attaching --- */

static int frozen_value(struct frozen *f, uint32_t i)
{
	uint64_t at = f->file->bias + f->symbol[i].value, size = f->symbol[i].size;
	uint8_t bytes[8];

	f->value[i] = 0;
	if (!f->symbol[i].value)
		return 0;
	if (size != 1 && size != 4)
		size = 8;
	if (memory_read(f->memory, at, bytes, size))
		return -EFAULT;
	memcpy(&f->value[i], bytes, size);
	return 0;
}

/* 0; -ENOENT: this build does not say. */
static int frozen_read(struct frozen *f)
{
	runtime_static_symbols(f->file->binary, variables, V_NR, f->symbol);
	for (uint32_t i = 0; i < V_NR; i++) {
		if (i < V_NEEDED && !f->symbol[i].value)
			return -ENOENT;
		if (frozen_value(f, i))
			return -EFAULT;
	}
	return 0;
}

/* Offsets are worked out while the virtual machine starts, when its stubs are there: -XX:-VMContinuations has no barrier. */
static int frozen_check(const struct frozen *f)
{
	if (!f->value[V_BARRIER])
		return -ENOENT;
	for (uint32_t i = V_TAIL; i <= V_STACK; i++)
		if (!f->value[i])
			return -EAGAIN;
	for (uint32_t i = V_TAIL; i <= V_STACK; i++)
		if (f->value[i] > INT16_MAX || f->value[i] % 4)
			return -ENOENT;
	return f->value[V_PC] % 8 || f->value[V_PC] > OTP_WALK_BLOCK - 8 || f->value[V_BOTTOM] > OTP_WALK_BLOCK - 4 ||
	       f->value[V_OWNER] > OTP_WALK_BLOCK - 8 || f->value[V_Z] || f->value[V_SHENANDOAH] ? -ENOENT : 0;
}

/* The barrier begins with mov rsp, [r15 + n]: the thread's entry. */
static int frozen_entry(const struct frozen *f, int32_t *ret)
{
	static const uint8_t load[] = {0x49, 0x8b, 0xa7};
	uint8_t code[7];

	if (memory_read(f->memory, f->value[V_BARRIER], code, sizeof(code)))
		return -EFAULT;
	memcpy(ret, code + sizeof(load), sizeof(*ret));
	return !memcmp(code, load, sizeof(load)) && *ret > 0 && *ret < OFFSET_MAX ? 0 : -ENOENT;
}

static int frozen_pointers(struct frozen *f, struct otp_walk_chunks *c)
{
	uint32_t shift = (uint32_t)f->value[V_SHIFT];

	c->wide = !f->value[V_COMPRESSED];
	c->base = f->value[V_BASE];
	if (f->symbol[V_NARROW].value) {
		c->base = f->value[V_NARROW];
		if (memory_u32(f->memory, f->file->bias + f->symbol[V_NARROW].value + 8, &shift))
			return -EFAULT;
	} else if (!f->symbol[V_BASE].value || !f->symbol[V_SHIFT].value) {
		return -ENOENT;
	}
	c->shift = (uint8_t)shift;
	return shift < 32 ? 0 : -ENOENT;
}

static int frozen_plan(struct frozen *f, const struct hotspot *h, struct otp_walk *w)
{
	int32_t entry;
	int err = frozen_entry(f, &entry);

	if (!err)
		err = thread_key_chain(f->file, f->memory, (uint32_t)f->value[V_KEY], w);
	if (err || w->nr_chain == OTP_WALK_CHAIN || h->thread_anchor == HOTSPOT_NONE || h->anchor_sp == HOTSPOT_NONE)
		return err ? err : -ENOENT;
	w->root_at = w->nr_chain;
	w->root_off = h->thread_anchor + h->anchor_sp;
	w->root_keep = 1;
	w->chain[w->nr_chain++] = entry;
	w->step = OTP_WALK_CHUNKS;
	w->keep = (1u << OTP_WALK_WORDS) - 1;
	w->stride = OTP_WALK_BLOCK;
	w->frames_max = OTP_WALK_BLOCKS;
	w->chunks = (struct otp_walk_chunks){
		.owner = ENTRY_OWNER, .chunk = (int16_t)f->value[V_TAIL], .outer = (int16_t)f->value[V_PARENT],
		.sp = (int16_t)f->value[V_SP], .end = (int16_t)f->value[V_SIZE], .stack = (int16_t)f->value[V_STACK],
		/* Known once the first virtual thread has run. */
		.also = f->file->bias + f->symbol[V_RETURN].value,
	};
	err = frozen_pointers(f, &w->chunks);
	return err || otp_walk_plan_sound(w) ? err : -ENOENT;
}

int hotspot_frozen_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h, struct otp_walk *ret)
{
	struct frozen f = {.file = file, .memory = m};
	struct otp_walk walk = {0};
	int err = h->version < SINCE ? -ENOENT : frozen_read(&f);

	if (!err)
		err = frozen_check(&f);
	if (!err)
		err = frozen_plan(&f, h, &walk);
	if (err)
		return err == -EAGAIN ? err : 0;
	h->barrier = f.value[V_BARRIER];
	h->chunk_pc = (uint16_t)f.value[V_PC];
	h->chunk_bottom = (uint16_t)f.value[V_BOTTOM];
	h->chunk_owner = (uint16_t)f.value[V_OWNER];
	*ret = walk;
	return 0;
}

/* --- what was copied --- */

#define BLOCK_WORDS (OTP_WALK_WORDS + 1)

static bool frozen_is_head(const struct runtime_copied *w, uint32_t i)
{
	return w->frames[(size_t)i * BLOCK_WORDS] & OTP_WALK_MISSING(0);
}

static uint64_t frozen_address(const struct runtime_copied *w, uint32_t i)
{
	return w->frames[(size_t)i * BLOCK_WORDS] & OTP_WALK_ADDRESS;
}

/* A field of a chunk, in its first block. */
static uint64_t frozen_field(const struct runtime_copied *w, uint32_t head, uint32_t at, size_t size)
{
	const uint8_t *block = (const uint8_t *)&w->frames[(size_t)head * BLOCK_WORDS + 1];
	uint64_t v = 0;

	memcpy(&v, block + at, size);
	return v;
}

/* A word of the blocks from first on; 0: it is not among them. */
static uint64_t frozen_word(const struct runtime_copied *w, const struct runtime_part *p, uint64_t address)
{
	uint64_t at = address - frozen_address(w, p->first), block = at / OTP_WALK_BLOCK;

	if (address % 8 || block >= p->nr)
		return 0;
	return w->frames[((size_t)p->first + block) * BLOCK_WORDS + 1 + at % OTP_WALK_BLOCK / 8];
}

static bool frozen_is_owned(const struct runtime_attached *a, const struct runtime_copied *w, uint32_t head, uint64_t owner)
{
	const struct otp_walk_chunks *c = &a->more.chunks;
	uint64_t at = hotspot_of(a)->chunk_owner;

	if (c->wide)
		return frozen_field(w, head, (uint32_t)at, 8) == owner;
	return c->base + (frozen_field(w, head, (uint32_t)at, 4) << (c->shift & 31)) == owner;
}

/* Blocks up to the next chunk's, one behind the other. */
static uint32_t frozen_blocks(const struct runtime_copied *w, uint32_t first)
{
	uint32_t n = 0;

	while (first + n < w->nr_frames && !frozen_is_head(w, first + n) &&
	       frozen_address(w, first + n) == frozen_address(w, first) + (uint64_t)n * OTP_WALK_BLOCK)
		n++;
	return n;
}

/* 0; -ENOENT: the chunk has no frames; -EBADMSG: its words do not agree. */
static int hotspot_frozen_part(const struct runtime_attached *a, const struct runtime_copied *w, uint32_t head, uint64_t owner,
			       struct runtime_part *ret)
{
	const struct hotspot *h = hotspot_of(a);
	uint64_t sp = frozen_field(w, head, (uint32_t)a->more.chunks.sp, 4), saved;

	if (!frozen_is_owned(a, w, head, owner))
		return -EBADMSG;
	if (sp >= frozen_field(w, head, h->chunk_bottom, 4))
		return -ENOENT;
	*ret = (struct runtime_part){.pc = frozen_field(w, head, h->chunk_pc, 8), .first = head + 1,
				     .nr = frozen_blocks(w, head + 1),
				     .sp = frozen_address(w, head) + (uint64_t)a->more.chunks.stack + 8 * sp};
	if (!ret->nr || ret->pc <= h->low || ret->pc >= h->high || frozen_word(w, ret, ret->sp - 8) != ret->pc)
		return -EBADMSG;
	saved = frozen_word(w, ret, ret->sp - 16);
	if (saved && saved < HOTSPOT_FROZEN_MAX)
		ret->fp = ret->sp - 16 + 8 * saved;
	return 0;
}

enum { ROOT_ANCHOR, ROOT_ENTRY, ROOT_OWNER, ROOT_RETURN, ROOT_WORDS };

/* What a decoder said of where a chunk's fields are: within its first block. */
static bool frozen_is_within(const struct runtime_attached *a)
{
	const struct hotspot *h = hotspot_of(a);
	const int32_t sp = a->more.chunks.sp;

	return h->chunk_pc <= OTP_WALK_BLOCK - 8 && h->chunk_owner <= OTP_WALK_BLOCK - 8 &&
	       h->chunk_bottom <= OTP_WALK_BLOCK - 4 && sp >= 0 && sp <= OTP_WALK_BLOCK - 4;
}

int hotspot_frozen(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_frozen *ret)
{
	if (w->nr_root != ROOT_WORDS || w->frame_words != BLOCK_WORDS)
		return -ENOENT;
	if (!frozen_is_within(a) || w->root[ROOT_ANCHOR] == w->root[ROOT_ENTRY])
		return -EBADMSG;
	for (uint32_t i = 0; i < w->nr_frames; i++) {
		int err;

		if (!frozen_is_head(w, i))
			continue;
		err = ret->nr < RUNTIME_PARTS ? hotspot_frozen_part(a, w, i, w->root[ROOT_OWNER], &ret->part[ret->nr]) : -E2BIG;
		if (err && err != -ENOENT)
			return err;
		ret->nr += !err;
	}
	ret->high = w->root[ROOT_ENTRY];
	ret->low = ret->high - ENTRY_ARGUMENTS;
	ret->back_pc = w->cut || w->root[ROOT_RETURN] == OTP_WALK_UNREAD ? 0 : w->root[ROOT_RETURN];
	ret->back_sp = w->root[ROOT_ENTRY];
	return ret->nr ? 0 : -ENOENT;
}
