// SPDX-License-Identifier: Apache-2.0
/*
 * What libjvm says of itself: tables of fields, types and statics, whose rows
 * lie in memory, with strides and offsets beside them.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define ROWS_MAX 4096
#define ROW_MAX	 128
#define TEXT_MAX 64

struct table {
	const struct runtime_file *file;
	struct memory *memory;
	uint64_t at, stride;
	uint8_t row[ROW_MAX];
	uint64_t text_at[2]; /* strings of neighbours are mostly the same */
	char text[2][TEXT_MAX];
};

/* A variable of libjvm, by its symbol. */
static int hotspot_variable(const struct runtime_file *file, struct memory *m, const char *name, uint64_t *ret)
{
	uint64_t at;
	int err = runtime_address(file, name, &at);

	return err ? err : memory_u64(m, at, ret);
}

static int hotspot_table_open(struct table *t, const char *table, const char *stride)
{
	int err = hotspot_variable(t->file, t->memory, table, &t->at);

	if (!err)
		err = hotspot_variable(t->file, t->memory, stride, &t->stride);
	if (err)
		return err == -ENOENT ? -ENOTSUP : err;
	return t->at && t->stride ? (t->stride > ROW_MAX ? -ENOTSUP : 0) : -EAGAIN;
}

/* The offset of a column within rows. */
static int hotspot_table_column(const struct table *t, const char *name, uint64_t *ret)
{
	int err = hotspot_variable(t->file, t->memory, name, ret);

	return err ? err : (*ret + sizeof(uint64_t) > t->stride ? -ENOTSUP : 0);
}

static uint64_t hotspot_table_word(const struct table *t, uint64_t column)
{
	uint64_t v;

	memcpy(&v, t->row + column, sizeof(v));
	return v;
}

static const char *hotspot_table_text(struct table *t, int which, uint64_t column)
{
	uint64_t at = hotspot_table_word(t, column);

	if (!at || (at != t->text_at[which] && memory_string(t->memory, at, t->text[which], TEXT_MAX)))
		return NULL;
	t->text_at[which] = at;
	return t->text[which];
}

/* --- fields --- */

struct field { const char *type, *name; uint16_t at, how; };
static const struct field hotspot_fields[] = {
#define X(member, type, field, how) {type, field, offsetof(struct hotspot, member), how},
	HOTSPOT_FIELDS(X)
#undef X
	{"Symbol", "_body", offsetof(struct hotspot, symbol_body), 0}, /* in 8 */
};

struct statics { const char *type, *name; uint16_t at; };
static const struct statics hotspot_statics[] = {
	{"CodeCache", "_heaps", offsetof(struct hotspot, heaps)},
	{"CodeCache", "_heap", offsetof(struct hotspot, heaps)},
	{"CodeCache", "_low_bound", offsetof(struct hotspot, low)},
	{"CodeCache", "_high_bound", offsetof(struct hotspot, high)},
	{"AbstractInterpreter", "_code", offsetof(struct hotspot, interpreter)},
	{"StubRoutines", "_call_stub_return_address", offsetof(struct hotspot, call_return)},
	{"PerfMemory", "_start", offsetof(struct hotspot, perf)},
	{"Universe", "_collectedHeap", offsetof(struct hotspot, collected)},
	{"Abstract_VM_Version", "_vm_major_version", offsetof(struct hotspot, version)},
};

struct field_columns { uint64_t type, name, is_static, offset, address; };

static bool hotspot_is_type_of_interest(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(hotspot_fields); i++)
		if (!strcmp(hotspot_fields[i].type, type))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(hotspot_statics); i++)
		if (!strcmp(hotspot_statics[i].type, type))
			return true;
	return false;
}

struct found_statics { uint64_t address[ARRAY_SIZE(hotspot_statics)]; };

static void hotspot_take_field(struct table *t, const struct field_columns *c, const char *type, const char *name,
			       struct hotspot *h, struct found_statics *statics)
{
	uint64_t offset = hotspot_table_word(t, c->offset), address = hotspot_table_word(t, c->address);

	for (size_t i = 0; i < ARRAY_SIZE(hotspot_fields); i++)
		if (!strcmp(hotspot_fields[i].type, type) && !strcmp(hotspot_fields[i].name, name) && offset < HOTSPOT_NONE)
			*(uint16_t *)((uint8_t *)h + hotspot_fields[i].at) = (uint16_t)offset;
	for (size_t i = 0; i < ARRAY_SIZE(hotspot_statics); i++)
		if (!strcmp(hotspot_statics[i].type, type) && !strcmp(hotspot_statics[i].name, name))
			statics->address[i] = address;
}

static int hotspot_field_columns(struct table *t, struct field_columns *ret)
{
	int err = hotspot_table_column(t, "gHotSpotVMStructEntryTypeNameOffset", &ret->type);

	if (!err)
		err = hotspot_table_column(t, "gHotSpotVMStructEntryFieldNameOffset", &ret->name);
	if (!err)
		err = hotspot_table_column(t, "gHotSpotVMStructEntryOffsetOffset", &ret->offset);
	return err ? err : hotspot_table_column(t, "gHotSpotVMStructEntryAddressOffset", &ret->address);
}

static int hotspot_read_fields(struct table *t, struct hotspot *h, struct found_statics *statics)
{
	struct field_columns c = {0};
	int err = hotspot_table_open(t, "gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride");

	if (!err)
		err = hotspot_field_columns(t, &c);
	for (int i = 0; !err && i < ROWS_MAX; i++, t->at += t->stride) {
		const char *type, *name;

		err = memory_read(t->memory, t->at, t->row, t->stride);
		if (err || !hotspot_table_word(t, c.type))
			return err;
		type = hotspot_table_text(t, 0, c.type);
		if (!type || !hotspot_is_type_of_interest(type))
			continue;
		name = hotspot_table_text(t, 1, c.name);
		if (name)
			hotspot_take_field(t, &c, type, name, h, statics);
	}
	return err;
}

/* --- types --- */

static void hotspot_take_size(const char *type, uint64_t size, struct hotspot *h)
{
	static const struct { const char *type; uint16_t at; } sizes[] = {
#define X(member, type) {type, offsetof(struct hotspot, member)},
		HOTSPOT_SIZES(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (!strcmp(sizes[i].type, type) && size < HOTSPOT_NONE)
			*(uint16_t *)((uint8_t *)h + sizes[i].at) = (uint16_t)size;
}

static int hotspot_read_types(struct table *t, struct hotspot *h)
{
	uint64_t name = 0, size = 0;
	int err = hotspot_table_open(t, "gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride");

	if (!err)
		err = hotspot_table_column(t, "gHotSpotVMTypeEntryTypeNameOffset", &name);
	if (!err)
		err = hotspot_table_column(t, "gHotSpotVMTypeEntrySizeOffset", &size);
	for (int i = 0; !err && i < ROWS_MAX; i++, t->at += t->stride) {
		const char *text;

		err = memory_read(t->memory, t->at, t->row, t->stride);
		if (err || !hotspot_table_word(t, name))
			return err;
		text = hotspot_table_text(t, 0, name);
		if (text)
			hotspot_take_size(text, hotspot_table_word(t, size), h);
	}
	return err;
}

/* --- the whole --- */

/* Statics of 8 bytes: their values; the version's is an int. */
static int hotspot_read_statics(struct memory *m, const struct found_statics *statics, struct hotspot *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(hotspot_statics); i++) {
		uint64_t value;

		if (!statics->address[i])
			continue;
		if (memory_u64(m, statics->address[i], &value))
			return -EFAULT;
		if (hotspot_statics[i].at == offsetof(struct hotspot, version))
			h->version = (uint16_t)value;
		else
			memcpy((uint8_t *)h + hotspot_statics[i].at, &value, sizeof(value));
	}
	return 0;
}

/* 8 has one heap of code, and its virtual machine the number 25. */
static int hotspot_bounds_of_8(struct memory *m, struct hotspot *h)
{
	h->version = 8;
	if (!h->heaps)
		return -EAGAIN;
	if (memory_u64(m, h->heaps + h->heap_memory, &h->low) || memory_u64(m, h->heaps + h->heap_memory + 8, &h->high))
		return -EFAULT;
	return 0;
}

static const char *hotspot_missing(const struct hotspot *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(hotspot_fields); i++)
		if (hotspot_fields[i].how != HOTSPOT_MAYBE &&
		    *(const uint16_t *)((const uint8_t *)h + hotspot_fields[i].at) == HOTSPOT_NONE)
			return hotspot_fields[i].name;
	return NULL;
}

static int hotspot_check(const struct hotspot *h, struct runtime_attached *ret, char why[RUNTIME_WHY_MAX])
{
	const char *missing = hotspot_missing(h);

	snprintf(ret->version, sizeof(ret->version), "%u", h->version);
	if (missing || !h->block_bytes || !h->const_bytes || !h->pool_bytes) {
		snprintf(why, RUNTIME_WHY_MAX, "version %u has no field %s", h->version, missing ? missing : "sizes");
		return -ENOTSUP;
	}
	if (h->version < 8 || h->version > 30) {
		snprintf(why, RUNTIME_WHY_MAX, "version %u is not known", h->version);
		return -ENOTSUP;
	}
	return h->low && h->high > h->low && h->heaps && h->interpreter ? 0 : -EAGAIN;
}

int hotspot_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		   char why[RUNTIME_WHY_MAX])
{
	struct table t = {.file = file, .memory = m};
	struct found_statics statics = {0};
	struct hotspot *h = (void *)ret->param;
	uint64_t j9;
	int err;

	if (runtime_address(file, HOTSPOT_OPENJ9, &j9) == 0) {
		snprintf(why, RUNTIME_WHY_MAX, "it is OpenJ9, whose frames are not known");
		return -ENOTSUP;
	}
	if (file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "its frames are known on x86-64 only");
		return -ENOTSUP;
	}
	memset(h, 0, sizeof(*h));
	for (size_t i = 0; i < ARRAY_SIZE(hotspot_fields); i++)
		*(uint16_t *)((uint8_t *)h + hotspot_fields[i].at) = HOTSPOT_NONE;
	/* In the static table alone, which some builds lack. */
	if (runtime_address(file, "_ZN12StubCodeDesc5_listE", &h->stubs))
		h->stubs = 0;
	err = hotspot_read_fields(&t, h, &statics);
	if (!err)
		err = hotspot_read_types(&t, h);
	if (!err)
		err = hotspot_read_statics(m, &statics, h);
	if (!err && !statics.address[0])
		err = hotspot_bounds_of_8(m, h);
	if (!err)
		err = hotspot_check(h, ret, why);
	if (!err)
		err = hotspot_frozen_attach(file, m, h, &ret->more);
	if (!err)
		hotspot_epoch_attach(file, m, h, &ret->walk);
	return err;
}
