/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the made-up V8 of v8_world.h, which comes before: a module of WebAssembly
 * with two functions that its code knows, one of them compiled a moment ago, a
 * jump table, and a wrapper.
 */
#ifndef OTP_TESTS_V8_WASM_WORLD_H
#define OTP_TESTS_V8_WASM_WORLD_H

#define VW_WASM		 (WORLD + 0x20000) /* points to the manager */
#define VW_MANAGER	 (WORLD + 0x20100)
#define VW_MODULE	 (WORLD + 0x23000)
#define VW_ISOLATE_INFO	 (WORLD + 0x23800)
#define VW_ISOLATE	 (WORLD + 0x40000)
#define VW_NODE(i)	 (WORLD + 0x24000 + 0x80ULL * (i))
#define VW_WASM_CODE(i)	 (WORLD + 0x25000 + 0x100ULL * (i))
#define VW_FRESH	 (WORLD + 0x25800)
#define VW_METADATA	 (WORLD + 0x25900)
#define VW_WIRE		 (WORLD + 0x26000)
#define VW_SPACE	 (WORLD + 0x28000)
#define VW_WASM_START(i) (VW_SPACE + 0x200ULL * (i))
#define VW_WASM_BYTES	 0x200
#define VW_SCRIPT_ID	 77
enum { VW_TABLE_CODE, VW_FIRST, VW_SECOND, VW_TO_JS };

static inline void v8_put_node(uint32_t i, uint64_t left, uint64_t right, const uint64_t value[3])
{
	put64(VW_NODE(i) + 16, left);
	put64(VW_NODE(i) + 24, right);
	put(VW_NODE(i) + 32, value, 3 * sizeof(value[0]));
}

static inline void v8_put_wasm_code(const struct v8_wasm_row *row, uint32_t i, uint32_t function, uint8_t flags)
{
	put64(VW_WASM_CODE(i) + 8, VW_WASM_START(i));
	put32(VW_WASM_CODE(i) + row->size, VW_WASM_BYTES);
	put32(VW_WASM_CODE(i) + row->index, function);
	put(VW_WASM_CODE(i) + row->flags, &flags, 1);
}

static inline uint32_t v8_put_leb(uint64_t at, uint64_t n)
{
	uint32_t len = 0;

	for (; n > 0x7f; n >>= 7) {
		const uint8_t byte = (uint8_t)(n | 0x80);

		put(at + len++, &byte, 1);
	}
	put(at + len, &(const uint8_t){(uint8_t)n}, 1);
	return len + 1;
}

static inline uint64_t v8_zigzag(int64_t n)
{
	return (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
}

/* At 0x20 it calls, in the second function, which is inlined there; at 0x60 by itself. Offsets are told from -1 on. */
static inline void v8_put_wasm_inlined(const struct v8_wasm_row *row)
{
	const int64_t inlined = (int64_t)1 << 31 | (5 + 1) << 1, own = (8 + 1) << 1;
	const struct __attribute__((packed)) {
		int32_t function;
		uint8_t tail;
		int64_t position;
	} inlining = {2, 0, own};
	uint32_t len = 0;

	if (!row->metadata)
		return;
	put64(VW_WASM_CODE(VW_FIRST) + row->metadata, VW_METADATA);
	len += v8_put_leb(VW_METADATA + 3 + len, v8_zigzag(0x20 + 1));
	len += v8_put_leb(VW_METADATA + 3 + len, v8_zigzag(inlined));
	len += v8_put_leb(VW_METADATA + 3 + len, v8_zigzag(0x40));
	len += v8_put_leb(VW_METADATA + 3 + len, v8_zigzag(own - inlined));
	put(VW_METADATA + 3 + len, &inlining, sizeof(inlining));
	put32(VW_WASM_CODE(VW_FIRST) + row->size + 4, 2); /* bytes of relocations */
	put32(VW_WASM_CODE(VW_FIRST) + row->size + 8, len);
	put32(VW_WASM_CODE(VW_FIRST) + row->size + 12, sizeof(inlining));
	put32(VW_WASM_CODE(VW_FIRST) + row->index - 4, 1); /* of protected instructions */
}

/* Sections: one of no interest, one with another name, and the names of functions 1 and 300. */
static inline void v8_put_wire(const struct v8_wasm_row *row)
{
	static const uint8_t bytes[] = {0,   'a', 's', 'm', 1, 0, 0, 0, 10, 2, 9, 9, 0, 4, 3, 'x', 'y', 'z',
					0,   25,  4,   'n', 'a', 'm', 'e', 0, 2, 1, 'm', 1, 14, 2, 1, 5, 'f', 'i', 'r', 's', 't',
					0xac, 2,  3,   'f', 'a', 'r'};
	const uint64_t owned[] = {VW_WIRE, sizeof(bytes)};

	put(VW_WIRE, bytes, sizeof(bytes));
	put(VW_WIRE - 16, owned, sizeof(owned));
	put64(VW_MODULE + row->wire, VW_WIRE - 16);
}

static inline void v8_put_wasm_script(const struct v8_wasm_row *row)
{
	const uint64_t script[] = {0, VW_MODULE, VW_NODE(9), VW_SCRIPT_ID};

	put64(VW_MANAGER + row->isolates, VW_NODE(7));
	put64(VW_NODE(7), 0);
	put64(VW_NODE(7) + row->isolate_key, VW_ISOLATE);
	put64(VW_NODE(7) + row->isolate_key + 8, VW_ISOLATE_INFO);
	put64(VW_ISOLATE_INFO + row->scripts, VW_NODE(8));
	put(VW_NODE(8), script, sizeof(script));
	put64(VW_NODE(9), VW_NODE(9) + 8);
	put64(VW_NODE(9) + 8, VW_SCRIPT);
}

static inline void v8_wasm_put(struct runtime_attached *a, uint16_t row_index)
{
	const struct v8_wasm_row *row = &v8_rows[row_index].wasm;
	const uint64_t fresh[] = {VW_WASM_CODE(VW_SECOND)}, span[] = {VW_FRESH, VW_FRESH + sizeof(fresh)};

	((struct v8 *)a->param)->wasm = VW_WASM;
	put64(VW_WASM, VW_MANAGER);
	put64(VW_MANAGER + row->spaces, VW_NODE(0));
	v8_put_node(0, 0, 0, (const uint64_t[3]){VW_SPACE, VW_WASM_START(VW_TO_JS), VW_MODULE});
	put64(VW_MODULE + row->codes, VW_NODE(1));
	v8_put_node(1, VW_NODE(2), 0, (const uint64_t[3]){VW_WASM_START(VW_FIRST), VW_WASM_CODE(VW_FIRST)});
	v8_put_node(2, 0, 0, (const uint64_t[3]){VW_WASM_START(VW_TABLE_CODE), VW_WASM_CODE(VW_TABLE_CODE)});
	put(VW_FRESH, fresh, sizeof(fresh));
	put(VW_MODULE + row->fresh, span, sizeof(span));
	v8_put_wasm_code(row, VW_TABLE_CODE, UINT32_MAX, 3);
	v8_put_wasm_code(row, VW_FIRST, 1, 8);
	v8_put_wasm_code(row, VW_SECOND, 2, 4);
	v8_put_wasm_code(row, VW_TO_JS, UINT32_MAX, 2);
	if (row->wrappers) {
		put64(VW_MANAGER + row->wrappers, VW_NODE(3));
		v8_put_node(3, 0, 0, (const uint64_t[3]){VW_WASM_START(VW_TO_JS), VW_WASM_CODE(VW_TO_JS)});
	}
	v8_put_wire(row);
	v8_put_wasm_script(row);
	v8_put_wasm_inlined(row);
}

/* Builtins beside the code of an isolate that lies far from the file. */
#define VW_COPY		    (WORLD + 0x50000)
#define VW_ISOLATE_BUILTINS 0x8000

static inline void v8_put_copy(struct runtime_attached *a)
{
	((struct v8 *)a->param)->isolate_builtins = VW_ISOLATE_BUILTINS;
	put(VW_COPY, world + (VW_BUILTINS - WORLD), 0x1000);
	put64(VW_ISOLATE + VW_ISOLATE_BUILTINS, VW_COPY);
}

#define VW_NAMES	(WORLD + 0x51000) /* a table; behind it, names */
#define VW_NAME(i)	(VW_NAMES + 0x200 + 0x40ULL * (i))
#define VW_EXPORT(i)	(WORLD + 0x52000 + 0x20ULL * (i))
#define VW_BLOB_CODE	0
#define VW_BLOB_DATA	1
#define VW_BLOB_SIZE	2
#define VW_NAME_OF	3

static const char *const v8_export_symbols[] = {
	[VW_BLOB_CODE] = "_ZN2v88internal23DefaultEmbeddedBlobCodeEv",
	[VW_BLOB_DATA] = "_ZN2v88internal23DefaultEmbeddedBlobDataEv",
	[VW_BLOB_SIZE] = "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv",
	[VW_NAME_OF] = "_ZN2v88internal8Builtins4nameENS0_7BuiltinE",
};

static inline void v8_put_name(uint32_t i, const char *name)
{
	put64(VW_NAMES + 24ULL * i, VW_NAME(i));
	put(VW_NAME(i), name, strlen(name) + 1);
}

static inline void v8_put_names(void)
{
	v8_put_name(0, "InterpreterEntryTrampoline");
	v8_put_name(1, "InterpreterEnterAtBytecode");
	v8_put_name(2, "BaselineOutOfLinePrologue");
	v8_put_name(3, "BaselineLeaveFrame");
	v8_put_name(4, "WideHandler");
}

/* A function: instructions whose last four bytes lead to a place, then others. */
static inline void v8_put_export(uint32_t i, const char *first, size_t len, uint64_t to, const char *then, size_t then_len)
{
	uint64_t at = VW_EXPORT(i) + len + 4;

	put(VW_EXPORT(i), first, len);
	put32(at - 4, (uint32_t)(to - at));
	put(at, then, then_len);
}

/* As in a library: each loads an address, that of the size also what is there. */
static inline void v8_put_exports(void)
{
	v8_put_export(VW_BLOB_CODE, "\x48\x8d\x05", 3, VW_BUILTINS, "\xc3", 1);
	v8_put_export(VW_BLOB_DATA, "\x48\x8d\x05", 3, VW_LAYOUT - 24, "\xc3", 1);
	v8_put_export(VW_BLOB_SIZE, "\x48\x8d\x05", 3, VW_NAMES - 8, "\x8b\x00\xc3", 3);
	v8_put_export(VW_NAME_OF, "\x48\x63\xff\x48\x8d\x05", 6, VW_NAMES, "\x48\x8d\x14\x7f\x48\x8b\x04\xd0\xc3", 9);
	put32(VW_NAMES - 8, 0x1000);
}

/* As of V8 13: one function, and the four that it calls; the last one's value is not asked for. */
#define VW_RANGE	VW_EXPORT(8)
#define VW_CURRENT(i)	(WORLD + 0x52400 + 0x10ULL * (i))
#define VW_VALUES	(VW_NAMES - 0x40)

static inline void v8_put_range(void)
{
	static const uint8_t begin[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x55, 0x49, 0x89, 0xf5};
	uint64_t at = VW_RANGE + sizeof(begin);

	put(VW_RANGE, begin, sizeof(begin));
	for (uint32_t i = 4; i-- > 0; at += 5) {
		put(at, "\xe8", 1);
		put32(at + 1, (uint32_t)(VW_CURRENT(i) - at - 5));
	}
	for (uint32_t i = 0; i < 4; i++) {
		const size_t len = i % 2 ? 2 : 3;

		put(VW_CURRENT(i), i % 2 ? "\x8b\x05" : "\x48\x8b\x05", len);
		put32(VW_CURRENT(i) + len, (uint32_t)(VW_VALUES + 8 * i - VW_CURRENT(i) - len - 4));
		put(VW_CURRENT(i) + len + 4, "\xc3", 1);
	}
	put64(VW_VALUES, VW_BUILTINS);
	put64(VW_VALUES + 8, 0x1000);
	put64(VW_VALUES + 16, VW_LAYOUT - 24);
}

#endif
