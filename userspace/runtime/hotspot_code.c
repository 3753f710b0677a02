// SPDX-License-Identifier: Apache-2.0
/*
 * Which code lies at an address: the heap of code, by its map of segments the
 * block, in it a CodeBlob, which is a compiled method, the interpreter with its
 * codelets, or code that was written by hand (OpenJDK, heap.cpp, codeBlob.hpp).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/hotspot.h"
#include "runtime/steady.h"

#define HEAPS_MAX    16
#define SHIFT_MAX    20
#define SEGMENT_FREE 0xff
#define BACK_MAX     4096 /* steps back in the map of segments, each 254 segments at most */
#define CODELETS_MAX 1024
#define IDENTITY_BYTES 64u /* of code that is no method's */

struct heap { uint64_t low, high, segments; uint32_t shift; };
struct blob { uint64_t at, code, end; int32_t complete, frame; char name[64]; };

/* --- heaps --- */

static int hotspot_heap_read(const struct hotspot *h, struct memory *m, uint64_t at, struct heap *ret)
{
	if (memory_u64(m, at + h->heap_memory + h->memory_low, &ret->low) ||
	    memory_u64(m, at + h->heap_memory + h->memory_high, &ret->high) ||
	    memory_u64(m, at + h->heap_segmap + h->memory_low, &ret->segments) ||
	    memory_u32(m, at + h->heap_shift, &ret->shift))
		return -EFAULT;
	return ret->shift <= SHIFT_MAX ? 0 : -EBADMSG;
}

static int hotspot_heap_if(const struct hotspot *h, struct memory *m, uint64_t at, uint64_t pc, struct heap *ret)
{
	int err = hotspot_heap_read(h, m, at, ret);

	return err ? err : (pc >= ret->low && pc < ret->high ? 0 : -ENOENT);
}

static int hotspot_heap_find(const struct hotspot *h, struct memory *m, uint64_t pc, struct heap *ret)
{
	uint64_t array, at;
	uint32_t nr;
	int err = -ENOENT;

	if (h->version < 9)
		return hotspot_heap_if(h, m, h->heaps, pc, ret);
	if (memory_u32(m, h->heaps, &nr) || memory_u64(m, h->heaps + h->array_data, &array))
		return -EFAULT;
	for (uint32_t i = 0; i < MIN(nr, (uint32_t)HEAPS_MAX) && err == -ENOENT; i++)
		err = memory_u64(m, array + 8ULL * i, &at) ? -EFAULT : hotspot_heap_if(h, m, at, pc, ret);
	return err;
}

/* A segment says how far before it its block begins, in steps. */
static int hotspot_block_find(const struct hotspot *h, struct memory *m, const struct heap *heap, uint64_t pc,
			      uint64_t *ret)
{
	uint64_t segment = (pc - heap->low) >> heap->shift;
	uint8_t back, used;

	for (int i = 0; i < BACK_MAX; i++) {
		if (memory_u8(m, heap->segments + segment, &back))
			return -EFAULT;
		if (back == SEGMENT_FREE || back > segment)
			return -ENOENT;
		if (!back)
			break;
		segment -= back;
	}
	*ret = heap->low + (segment << heap->shift);
	if (memory_u8(m, *ret + h->block_used, &used))
		return -EFAULT;
	*ret += h->block_bytes;
	return used ? 0 : -ENOENT;
}

/* --- blobs --- */

static int hotspot_blob_code(const struct hotspot *h, struct memory *m, struct blob *b)
{
	uint32_t offset;

	if (h->blob_code_begin != HOTSPOT_NONE)
		return memory_u64(m, b->at + h->blob_code_begin, &b->code);
	if (h->blob_code_offset == HOTSPOT_NONE || memory_u32(m, b->at + h->blob_code_offset, &offset))
		return -EFAULT;
	b->code = b->at + offset;
	return 0;
}

/* Behind its code lies data, of methods (codeBlob.hpp, _data_offset: 8 to 26). */
static uint64_t hotspot_blob_end(const struct hotspot *h, struct memory *m, const struct blob *b, uint32_t size)
{
	uint32_t data;

	if (h->blob_data_offset == HOTSPOT_NONE || memory_u32(m, b->at + h->blob_data_offset, &data) || data > size ||
	    b->at + data <= b->code)
		return b->at + size;
	return b->at + data;
}

static int hotspot_blob_read(const struct hotspot *h, struct memory *m, uint64_t at, struct blob *ret)
{
	uint32_t size, complete, frame;
	uint64_t name;

	ret->at = at;
	if (memory_u32(m, at + h->blob_size, &size) || memory_u32(m, at + h->blob_complete, &complete) ||
	    memory_u32(m, at + h->blob_frame, &frame) || memory_u64(m, at + h->blob_name, &name) ||
	    hotspot_blob_code(h, m, ret) || memory_string(m, name, ret->name, sizeof(ret->name)))
		return -EFAULT;
	ret->end = hotspot_blob_end(h, m, ret, size);
	ret->complete = h->version >= HOTSPOT_SHORT_FIELDS ? (int16_t)complete : (int32_t)complete;
	ret->frame = (int32_t)frame;
	return ret->code >= at && ret->end > ret->code && size < RUNTIME_CODE_BYTES ? 0 : -EBADMSG;
}

/* --- what there is --- */

static void hotspot_name(struct runtime_code *c, const char *what, const char *name)
{
	snprintf(c->name, sizeof(c->name), "[%s%s]", what, name);
}

/* An interpreter's codelet; those of one heap of codelets lie one behind the other. */
static int hotspot_codelet(const struct hotspot *h, struct memory *m, uint64_t pc, struct runtime_code *c)
{
	uint64_t at, text;
	uint32_t size = 0, begin, end;
	char name[64];

	if (memory_u64(m, h->interpreter + h->queue_buffer, &at) || memory_u32(m, h->interpreter + h->queue_begin, &begin) ||
	    memory_u32(m, h->interpreter + h->queue_end, &end))
		return -EFAULT;
	at += begin;
	for (int i = 0; i < CODELETS_MAX; i++, at += size) {
		if (memory_u32(m, at + h->codelet_size, &size))
			return -EFAULT;
		if (!size || at > pc)
			return -ENOENT;
		if (pc - at < size)
			break;
	}
	if (pc - at >= size || memory_u64(m, at + h->codelet_text, &text) || memory_string(m, text, name, sizeof(name)))
		return -ENOENT;
	c->start = at;
	c->end = at + size;
	c->kind = strstr(name, "method entry") || strstr(name, "native entry") ? HOTSPOT_ENTRY : HOTSPOT_INTERPRETER;
	hotspot_name(c, "interpreter: ", name);
	return 0;
}

static bool hotspot_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* C1's, whose frames end otherwise than those of compiled code; since 24 called by the second name, in 27 by the third. */
static bool hotspot_is_c1_stub(const char *name)
{
	return strstr(name, "Runtime1 stub") || hotspot_begins(name, "C1 Runtime ") || strstr(name, " (C1 runtime)");
}

/* Other stubs of C1 jump there with their frames (c1_Runtime1_x86.cpp, forward_exception). */
static bool hotspot_is_called(const char *name)
{
	return !strstr(name, "forward_exception");
}

/* By JNI, or (since 21, upcallLinker_x86_64.cpp) by a pointer that the program has made of a method. */
static bool hotspot_is_upcall(const struct hotspot *h, const char *name, const struct runtime_code *c)
{
	return hotspot_begins(name, "upcall_stub") || (h->call_return >= c->start && h->call_return < c->end);
}

static int hotspot_by_hand(const struct hotspot *h, struct memory *m, const struct blob *b, uint64_t pc,
			   struct runtime_code *c)
{
	bool begins = hotspot_is_called(b->name);

	c->kind = HOTSPOT_STUB;
	if (hotspot_begins(b->name, "I2C/C2I") || hotspot_begins(b->name, "MethodHandle"))
		c->kind = HOTSPOT_ADAPTER;
	hotspot_name(c, "", b->name);
	/* What no descriptor tells of in a blob of many stubs may begin anywhere in one. */
	if (hotspot_begins(b->name, "StubRoutines"))
		begins = hotspot_stub(h, m, pc, c);
	if (c->kind == HOTSPOT_STUB && begins)
		hotspot_depth_read(m, c);
	if (c->kind == HOTSPOT_STUB && begins && hotspot_is_upcall(h, b->name, c))
		c->kind = HOTSPOT_UPCALL;
	if (hotspot_is_c1_stub(b->name) && strstr(b->name, "slow_subtype_check"))
		c->kind = HOTSPOT_SUBTYPE;
	return 0;
}

/* What polls of threads lead to; in 27 it has the name of its stub. */
static bool hotspot_is_safepoint(const char *name)
{
	return !strcmp(name, "SafepointBlob") || hotspot_begins(name, "polling_page_");
}

/*
 * Code that is called and saves all registers: in a frame with a frame pointer, in many steps (sharedRuntime_x86_64.cpp,
 * RegisterSaver). A poll that is no return has no return address yet, and begins otherwise; what gives frames up takes
 * them away itself.
 */
static bool hotspot_saves_all(struct memory *m, const struct blob *b)
{
	static const uint8_t mov[] = {0x48, 0x8b, 0xec}, mov_2[] = {0x48, 0x89, 0xe5};
	uint8_t code[5]; /* push rbp; mov rbp, rsp; pushf */

	if ((b->complete < 0 && !hotspot_is_safepoint(b->name)) || memory_read(m, b->code, code, sizeof(code)))
		return false;
	return code[0] == 0x55 && (!memcmp(code + 1, mov, 3) || !memcmp(code + 1, mov_2, 3)) && code[4] == 0x9c;
}

static bool hotspot_is_nmethod(const char *name)
{
	return !strcmp(name, "nmethod") || !strcmp(name, "native nmethod");
}

/* Code that the program makes and gives up, as the linker of foreign functions does (upcallStubs.cpp, NativeEntryPoint). */
static bool hotspot_is_given_up(const char *name)
{
	return hotspot_begins(name, "upcall_stub") || hotspot_begins(name, "nep_invoker");
}

/* A stub may be replaced by another one of the same size: its name and its first instructions identify it. */
static uint64_t hotspot_blob_identity(struct memory *m, const struct blob *b)
{
	uint8_t code[IDENTITY_BYTES] = {0};
	const uint64_t size = b->end - b->code;
	uint64_t name = hash_content(b->name, strlen(b->name), (uint64_t)b->frame);

	if (memory_read(m, b->code, code, MIN(size, (uint64_t)sizeof(code))))
		memset(code, 0, sizeof(code));
	return hash_content(code, sizeof(code), name ^ size);
}

/* MethodHandle's linkToStatic and the like (sharedRuntime_x86_64.cpp, gen_special_dispatch). */
static int hotspot_without_frame(const struct hotspot *h, struct memory *m, const struct blob *b, uint64_t pc,
				 struct runtime_code_made *ret)
{
	int err = hotspot_nmethod(h, m, b->at, true, 0, 0, ret);

	return err ? err : hotspot_by_hand(h, m, b, pc, &ret->code);
}

static int hotspot_describe(const struct hotspot *h, struct memory *m, const struct blob *b, uint64_t pc,
			    struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;
	uint64_t complete = b->complete > 0 ? (uint64_t)b->complete : 0;

	c->start = b->code;
	c->end = b->end;
	c->identity[0] = b->at;
	c->flags = hotspot_is_given_up(b->name) ? RUNTIME_CODE_FLEETING : 0;
	if (!strcmp(b->name, "Interpreter"))
		return hotspot_codelet(h, m, pc, c);
	if (!hotspot_is_nmethod(b->name))
		c->identity[1] = hotspot_blob_identity(m, b);
	if (b->frame <= 0 && hotspot_is_nmethod(b->name))
		return hotspot_without_frame(h, m, b, pc, ret);
	if (b->frame <= 0 || hotspot_is_c1_stub(b->name) || (!hotspot_is_nmethod(b->name) && hotspot_saves_all(m, b)))
		return hotspot_by_hand(h, m, b, pc, c);
	c->kind = HOTSPOT_COMPILED;
	if (hotspot_is_nmethod(b->name))
		return hotspot_nmethod(h, m, b->at, b->name[1] == 'a', complete, 8ULL * (uint64_t)b->frame, ret);
	if (b->complete < 0)
		hotspot_frame_words_of_callers(m, b->code, 8ULL * (uint64_t)b->frame, ret);
	else
		hotspot_frame_words(m, b->code, complete, 8ULL * (uint64_t)b->frame, ret);
	hotspot_name(c, "", b->name);
	return 0;
}

static int hotspot_code_read(const struct hotspot *h, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct heap heap;
	struct blob blob;
	uint64_t at;
	int err = hotspot_heap_find(h, m, pc, &heap);

	if (!err)
		err = hotspot_block_find(h, m, &heap, pc, &at);
	if (!err)
		err = hotspot_blob_read(h, m, at, &blob);
	if (!err && (pc < blob.code || pc >= blob.end))
		err = -ENOENT;
	return err ? err : hotspot_describe(h, m, &blob, pc, ret);
}

struct hotspot_code_question {
	const struct hotspot *h;
	struct memory *memory;
	uint64_t pc, code_epoch; /* now */
	struct runtime_code_made *made;
};

static int hotspot_code_count(void *ctx, uint64_t counters[STEADY_COUNTERS])
{
	struct hotspot_code_question *q = ctx;

	if (hotspot_epochs_now(q->h, q->memory, &counters[0], &counters[1]))
		return -EFAULT;
	q->code_epoch = counters[1];
	return 0;
}

static int hotspot_code_answer(void *ctx)
{
	const struct hotspot_code_question *q = ctx;
	int err;

	memset(&q->made->code, 0, sizeof(q->made->code));
	q->made->code.epoch = q->code_epoch;
	/* Without a counter, nothing tells that what was gathered is still so. */
	if (q->h->code_epoch_at || q->h->epoch_at)
		memory_gather(q->memory);
	err = hotspot_code_read(q->h, q->memory, q->pc, q->made);
	memory_gather_done(q->memory);
	return err;
}

int hotspot_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct hotspot_code_question q = {.h = hotspot_of(a), .memory = m, .pc = pc, .made = ret};

	if (pc < q.h->low || pc >= q.h->high)
		return -ENOENT;
	return steady_read(&(struct steady){.count = hotspot_code_count, .read = hotspot_code_answer, .ctx = &q});
}
