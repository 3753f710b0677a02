/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up HotSpot in the memory of a process: one heap of code with a compiled
 * method that has another one inlined, and two methods with their classes. The
 * offsets are those of OpenJDK 17, as its tables say.
 *
 * Included after put, put32 and put64 of WORLD are there (tests/lib/world.h).
 */
#ifndef OTP_TESTS_HOTSPOT_WORLD_H
#define OTP_TESTS_HOTSPOT_WORLD_H

#include <stdint.h>
#include <string.h>

#include "runtime/hotspot.h"

#define HW_SHIFT	7
#define HW_SEGMENTS	(WORLD + 0x8000)
#define HW_HEAP		(WORLD + 0x10000)
#define HW_HEAP_BYTES	0x4000
#define HW_BLOCK	(HW_HEAP + (4 << HW_SHIFT))
#define HW_BLOCK_USED	8
#define HW_BLOB		(HW_BLOCK + 16)
#define HW_BLOB_BYTES	0x400
#define HW_CODE		(HW_BLOB + 0x200)
#define HW_CALL		0x30 /* where the call that is in inlined code returns to */
#define HW_POLL		0x50 /* a safepoint of the method itself */
#define HW_DOWN		0x64 /* the frame is taken down; pop and return follow */
#define HW_NMETHOD_ID	0x130
#define HW_SCOPES	(WORLD + 0x6000)
#define HW_METHOD(i)	(WORLD + 0x20000 + 0x1000ULL * (i))
#define HW_CACHE(i)	(HW_METHOD(i) + 0x800)
#define HW_PERF		(WORLD + 0x28000)
#define HW_UNLOADED	(HW_PERF + 32 + 64 + 48) /* the counter of unloaded classes, the second of two */
#define HW_STUBS	(WORLD + 0x29000) /* the list of hand-written code, whose first stub is the return barrier */
#define HW_STUB		(HW_CODE + 0x20)
#define HW_BARRIER	(HW_CODE + 0x60)
#define HW_COLLECTOR	(WORLD + 0x2a000)
#define HW_COLLECTIONS	0x54
#define HW_CODE_EPOCH	(WORLD + 0x2b000)

static inline void hotspot_layout(struct hotspot *h, uint16_t version)
{
	*h = (struct hotspot){
		.low = HW_HEAP, .high = HW_HEAP + HW_HEAP_BYTES, .heaps = version < 9 ? WORLD + 0x100 : WORLD, .stubs = HW_STUBS, .interpreter = WORLD + 0x400, .version = version,
		.memory_low = 0x10, .memory_high = 0x18, .heap_memory = 8, .heap_segmap = 0x78, .heap_shift = 0x100,
		.block_used = HW_BLOCK_USED, .array_data = 8, .queue_buffer = 8, .queue_begin = 0x18, .queue_end = 0x1c,
		.codelet_size = 8, .codelet_text = 0, .blob_name = 0x60, .blob_size = 0xc, .blob_complete = 0x14,
		.blob_frame = 0x1c, .blob_code_begin = 0x20, .blob_code_offset = HOTSPOT_NONE,
		.blob_relocation_size = HOTSPOT_NONE, .blob_mutable = HOTSPOT_NONE, .blob_data_offset = 0x18,
		.compiled_method = 0x70, .compiled_scopes = 0x78, .nmethod_method = HOTSPOT_NONE,
		.nmethod_scopes = HOTSPOT_NONE, .nmethod_pcs = 0x10c, .nmethod_dependencies = 0x110,
		.nmethod_metadata = 0x104, .nmethod_immutable = HOTSPOT_NONE, .nmethod_id = HW_NMETHOD_ID,
		.nmethod_bci = 0xc0, .nmethod_original = 0x118, .nmethod_deopt = HOTSPOT_NONE,
		.nmethod_deopt_8 = HOTSPOT_NONE, .compiled_deopt = 0x80, .method_const = 8,
		.const_constants = 8, .const_code_size = 0x20, .const_name = 0x22,
		.const_signature = 0x24, .const_flags = 0x1c, .const_flags_21 = HOTSPOT_NONE, .pool_cache = 0x10,
		.pool_holder = 0x18, .pool_length = 0x3c, .pool_file = 0x36, .klass_file = HOTSPOT_NONE, .klass_name = 0x18,
		.symbol_length = 4, .symbol_body = 6, .heap_collections = HW_COLLECTIONS, .perf = HW_PERF,
		.collected = HW_COLLECTOR, .block_bytes = 16, .const_bytes = 48, .pool_bytes = 72,
	};
}

static inline void hotspot_put_symbol(uint64_t at, const char *text)
{
	uint16_t len = (uint16_t)strlen(text);

	put(at + 4, &len, sizeof(len));
	put(at + 6, text, len);
}

/* Its class, name, signature and file; lines end with a zero. */
static inline void hotspot_put_method(uint64_t at, const char *class, const char *name, const char *signature,
				      const char *file, const uint8_t *lines, size_t nr_lines)
{
	uint64_t constant = at + 0x100, pool = at + 0x200, holder = at + 0x900, symbols = at + 0xa00;
	const char *const texts[] = {class, name, signature, file};
	const uint16_t indexes[] = {40, 1, 2}; /* code size, name, signature */
	uint16_t file_index = *file ? 3 : 0;
	uint8_t flags = nr_lines > 0;

	put64(at + 8, constant);
	put64(constant + 8, pool);
	put(constant + 0x1c, &flags, 1);
	put(constant + 0x20, indexes, sizeof(indexes));
	put(constant + 48 + 40, lines, nr_lines);
	put64(pool + 0x10, at + 0x800);
	put64(pool + 0x18, holder);
	put32(pool + 0x3c, 4);
	put(pool + 0x36, &file_index, sizeof(file_index));
	put64(holder + 0x18, symbols);
	for (uint64_t i = 0; i < 4; i++) {
		hotspot_put_symbol(symbols + 0x80 * i, texts[i]);
		if (i)
			put64(pool + 72 + 8 * i, symbols + 0x80 * i);
	}
}

static inline void hotspot_put_heap(void)
{
	uint8_t segments[HW_HEAP_BYTES >> HW_SHIFT];

	memset(segments, 0xff, sizeof(segments));
	for (uint32_t i = 0; i <= (HW_BLOB_BYTES + 16) >> HW_SHIFT; i++)
		segments[4 + i] = (uint8_t)i;
	put32(WORLD, 1);
	put64(WORLD + 8, WORLD + 0x20);
	put64(WORLD + 0x20, WORLD + 0x100);
	put64(WORLD + 0x100 + 8 + 0x10, HW_HEAP);
	put64(WORLD + 0x100 + 8 + 0x18, HW_HEAP + HW_HEAP_BYTES);
	put64(WORLD + 0x100 + 0x78 + 0x10, HW_SEGMENTS);
	put32(WORLD + 0x100 + 0x100, HW_SHIFT);
	put(HW_SEGMENTS, segments, sizeof(segments));
}

static inline void hotspot_put_nmethod(void)
{
	static const uint8_t prologue[] = {0x55, 0x48, 0x83, 0xec, 0x20}, epilogue[] = {0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};
	/* At 1: the method itself, bytecode 5. At 8: the other one, bytecode 0, in it. */
	static const uint8_t scopes[] = {0, 0, 1, 6, 0, 0, 0, 0, 1, 2, 1};
	static const int32_t pcs[4][4] = {{-1}, {HW_CALL, 8}, {HW_POLL, 1}, {INT32_MAX}};
	const uint8_t used = 1;

	put(HW_BLOCK + HW_BLOCK_USED, &used, 1);
	put(WORLD + 0x700, "nmethod", 8);
	put64(HW_BLOB + 0x60, WORLD + 0x700);
	put32(HW_BLOB + 0xc, HW_BLOB_BYTES);
	put32(HW_BLOB + 0x14, sizeof(prologue));
	put32(HW_BLOB + 0x1c, 6);
	put64(HW_BLOB + 0x20, HW_CODE);
	put64(HW_BLOB + 0x70, HW_METHOD(0));
	put64(HW_BLOB + 0x78, HW_SCOPES);
	put32(HW_BLOB + 0x104, 0x190);
	put32(HW_BLOB + 0x10c, 0x1a0);
	put32(HW_BLOB + 0x110, 0x1a0 + sizeof(pcs));
	put32(HW_BLOB + HW_NMETHOD_ID, 77);
	put32(HW_BLOB + 0xc0, (uint32_t)-1);
	put64(HW_BLOB + 0x190, HW_METHOD(0));
	put64(HW_BLOB + 0x198, HW_METHOD(1));
	put(HW_BLOB + 0x1a0, pcs, sizeof(pcs));
	put(HW_SCOPES, scopes, sizeof(scopes));
	put(HW_CODE, prologue, sizeof(prologue));
	put(HW_CODE + HW_DOWN - 4, epilogue, sizeof(epilogue));
}

static inline void hotspot_put_counter(uint64_t at, const char *name)
{
	const uint32_t head[] = {64, 20, 0, 'J' | 1u << 8 | 4u << 16 | 2u << 24, 48};

	put(at, head, sizeof(head));
	put(at + 20, name, strlen(name) + 1);
}

static inline void hotspot_put_perf(void)
{
	const uint32_t head[] = {0xc0c0feca, 1 | 2u << 8 | 1u << 24, 32 + 2 * 64, 0, 0, 0, 32, 2};

	put(HW_PERF, head, sizeof(head));
	hotspot_put_counter(HW_PERF + 32, "java.cls.loadedClasses");
	hotspot_put_counter(HW_PERF + 32 + 64, "java.cls.unloadedClasses");
}

/* The blob is one of hand-written code instead; in 8 an index lies before the addresses. */
static inline void hotspot_put_stubs(uint16_t version)
{
	const uint64_t first[] = {HW_STUBS + 0x80, HW_STUBS + 0x200, HW_STUBS + 0x280, HW_BARRIER, HW_BARRIER + 0x40},
		       second[] = {0, HW_STUBS + 0x200, HW_STUBS + 0x240, HW_STUB, HW_BARRIER};
	uint64_t index = version < 9 ? 8 : 0;

	put(WORLD + 0x700, "StubRoutines (1)", 17);
	put32(HW_BLOB + 0x1c, 0);
	put64(HW_STUBS, HW_STUBS + 0x20);
	put(HW_STUBS + 0x20, first, 24);
	put(HW_STUBS + 0x20 + 24 + index, first + 3, 16);
	put(HW_STUBS + 0x80, second, 24);
	put(HW_STUBS + 0x80 + 24 + index, second + 3, 16);
	put(HW_STUBS + 0x240, "jbyte_arraycopy", 16);
	put(HW_STUBS + 0x280, "cont_returnBarrier", 19);
}

static inline void hotspot_world_make(struct runtime_attached *a, uint16_t version)
{
	/* Bytecodes 0, 5 and 30 begin lines 40, 42 and 300. */
	static const uint8_t lines[] = {0xff, 0, 80, 5 << 3 | 2, 0xff, 50, 196, 5, 0};

	memset(a, 0, sizeof(*a));
	hotspot_layout((void *)a->param, version);
	hotspot_put_heap();
	hotspot_put_perf();
	hotspot_put_nmethod();
	hotspot_put_method(HW_METHOD(0), "org/demo/Outer$Inner", "put", "(I[Ljava/lang/String;[[J)V", "Outer.java", lines,
			   sizeof(lines));
	hotspot_put_method(HW_METHOD(1), "Main$$Lambda+0x0000000800c03000", "run", "()V", "", lines, 0);
}

#endif
