// SPDX-License-Identifier: Apache-2.0
/*
 * Methods: a MethodDesc lies in a chunk of those of one MethodTable, both have a
 * part of the method's row in its module's table (dotnet/runtime,
 * src/coreclr/vm/method.hpp). Dynamic methods have no row, but a name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/dotnet.h"

#define CHUNK_BYTES 24
#define ROW_BITS    12 /* of the row, in the MethodDesc; the chunk has the others */
#define CLASS_MASK  7u
#define FILE_HEAD   96 /* of a PE header: when it was made or of what content, sizes */

#define TABLE_FLAGS   0	 /* of a MethodTable */
#define TABLE_FLAGS2  8
#define TABLE_VIRTUALS 12
#define TABLE_MODULE  24
#define TABLE_CLASS   40
#define TABLE_SLOTS   48 /* the first two; the others lie behind the virtual methods' chunks */
#define TABLE_BYTES   64

/* --- modules --- */

/* In 8 (methodtable.h: GetModule, MultipurposeSlotOffset): of generic types, a slot has it where it is another one. */
#define FLAG_COMPONENTS 0x80000000u
#define FLAG_GENERIC	0x00000030u
#define FLAG2_SLOTS	0x001fu
#define FLAG2_MODULE	0x0010u
#define CLASS_IS_TABLE	1u /* of the word that has a class, or the table of the type that it is an instance of */

static int dotnet_canonical(struct memory *m, uint64_t table, uint64_t *ret)
{
	uint64_t class;

	if (memory_u64(m, table + TABLE_CLASS, &class))
		return -EFAULT;
	*ret = class & CLASS_IS_TABLE ? class & ~(uint64_t)CLASS_IS_TABLE : table;
	return 0;
}

static int dotnet_moved_module(struct memory *m, uint64_t table, uint64_t *ret)
{
	uint32_t flags2, virtuals;
	uint64_t slot;

	if (memory_u32(m, table + TABLE_FLAGS2, &flags2) || memory_u32(m, table + TABLE_VIRTUALS, &virtuals))
		return -EFAULT;
	if (!(flags2 & FLAG2_MODULE))
		return memory_u64(m, table + TABLE_MODULE, ret);
	slot = (uint64_t)__builtin_popcount(flags2 & FLAG2_SLOTS & ~FLAG2_MODULE);
	if (slot < 2)
		return memory_u64(m, table + TABLE_SLOTS + 8 * slot, ret);
	return memory_u64(m, table + TABLE_BYTES + 8 * (slot - 2) + 8ULL * (((virtuals & 0xffff) + 7) / 8), ret);
}

static int dotnet_module(const struct dotnet *d, struct memory *m, uint64_t table, uint64_t *ret)
{
	uint32_t flags;

	if (!dotnet_row(d)->module_may_be_moved)
		return memory_u64(m, table + TABLE_MODULE, ret);
	if (memory_u32(m, table + TABLE_FLAGS, &flags))
		return -EFAULT;
	if (flags & (FLAG_COMPONENTS | FLAG_GENERIC) && dotnet_canonical(m, table, &table))
		return -EFAULT;
	return dotnet_moved_module(m, table, ret);
}

/* Where its file lies in memory: PEAssembly: PEImage: the layout that was loaded (peassembly.h, peimage.h). */
static int dotnet_module_image(const struct dotnet *d, struct memory *m, uint64_t module, uint64_t *ret)
{
	const struct dotnet_row *row = dotnet_row(d);
	int err;

	if (row->module_base)
		err = memory_u64(m, module + row->module_base, ret);
	else
		err = memory_u64(m, module + row->module_file, ret) || memory_u64(m, *ret + 8, ret) ||
				      memory_u64(m, *ret + 120, ret) || memory_u64(m, *ret + 8, ret) ?
			      -EFAULT : 0;
	return err ? err : (*ret ? 0 : -ENOENT);
}

/* As the file of a name, where no source is known: its assembly. */
static void dotnet_assembly(const struct dotnet *d, struct memory *m, uint64_t module, struct runtime_function *ret)
{
	char name[256];
	uint64_t at;

	if (memory_u64(m, module + dotnet_row(d)->module_name, &at) == 0 && memory_string(m, at, name, sizeof(name)) == 0 && *name)
		snprintf(ret->file, sizeof(ret->file), "%s.dll", name);
}

/* --- methods --- */

/*
 * Those that are collected, and those of assemblies that are unloaded, have others in their place, perhaps with the same
 * MethodTable and row: the text of the name, or the head of the assembly's file, tells them apart.
 */
static int dotnet_method_read_name(const struct dotnet *d, struct memory *m, struct dotnet_method *ret)
{
	uint64_t at;

	if (memory_u64(m, ret->address + dotnet_row(d)->dynamic_name, &at) ||
	    memory_string(m, at, ret->name, sizeof(ret->name)))
		return -EFAULT;
	ret->identity = hash_content(ret->name, strlen(ret->name), 0);
	return 0;
}

static int dotnet_method_read_file(const struct dotnet *d, struct memory *m, struct dotnet_method *ret)
{
	uint8_t head[FILE_HEAD];
	uint64_t module, image;
	uint32_t pe;

	if (dotnet_module(d, m, ret->table, &module) || dotnet_module_image(d, m, module, &image) ||
	    memory_u32(m, image + 0x3c, &pe) || memory_read(m, image + pe, head, sizeof(head)))
		return -EFAULT;
	ret->identity = hash_content(head, sizeof(head), image);
	return 0;
}

int dotnet_method_read(const struct dotnet *d, struct memory *m, uint64_t address, struct dotnet_method *ret)
{
	struct { uint16_t row; uint8_t index, flags2; uint16_t slot, flags; } desc;
	struct { uint64_t table, next; uint8_t size, count; uint16_t row; } chunk;
	const uint32_t row_mask = (1u << ROW_BITS) - 1;

	if (memory_read(m, address, &desc, sizeof(desc)) ||
	    memory_read(m, address - 8ULL * desc.index - CHUNK_BYTES, &chunk, 20))
		return -EFAULT;
	*ret = (struct dotnet_method){.address = address, .table = chunk.table, .class = desc.flags & CLASS_MASK,
				      .token = (chunk.row & row_mask) << ROW_BITS | (desc.row & row_mask)};
	if (desc.index > 0 && !chunk.table)
		return -EBADMSG;
	return ret->class == DOTNET_CLASS_DYNAMIC ? dotnet_method_read_name(d, m, ret) : dotnet_method_read_file(d, m, ret);
}

/* --- names --- */

/* Those that the runtime itself makes, to call native code or of delegates, have names that begin so. */
static int dotnet_decode_dynamic(const struct dotnet_method *method, struct runtime_function *ret)
{
	const char *class = strncmp(method->name, "IL_STUB", 7) ? "DynamicClass" : "ILStubClass";

	if (!*method->name)
		return -ENOENT;
	snprintf(ret->name, sizeof(ret->name), "%s.%s", class, method->name);
	return 0;
}

static int dotnet_decode_method(const struct dotnet *d, struct memory *m, const struct dotnet_method *method,
				struct runtime_function *ret)
{
	struct dotnet_text text = {.at = ret->name, .left = sizeof(ret->name)};
	struct dotnet_metadata metadata;
	struct dotnet_pe pe;
	uint64_t module, image;
	int err = dotnet_module(d, m, method->table, &module);

	if (!err)
		err = dotnet_module_image(d, m, module, &image);
	if (!err)
		err = dotnet_pe_open(m, image, &pe);
	if (!err)
		err = dotnet_metadata_open(&pe, &metadata);
	if (!err)
		err = dotnet_method_name(&metadata, method->token, &text);
	if (!err && dotnet_lines(&pe, method->token, ret))
		dotnet_assembly(d, m, module, ret);
	return err;
}

static bool dotnet_is_same(const struct dotnet_method *method, const struct runtime_frame *f)
{
	return method->table == f->cookie[0] && ((uint64_t)method->class << 32 | method->token) == f->cookie[1] &&
	       method->identity == f->cookie[2];
}

int dotnet_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret)
{
	const struct dotnet *d = dotnet_of(a);
	struct dotnet_method method;
	int err = dotnet_method_read(d, m, f->key, &method);

	if (err)
		return err;
	if (!dotnet_is_same(&method, f))
		return -ESTALE;
	err = method.class == DOTNET_CLASS_DYNAMIC ? dotnet_decode_dynamic(&method, ret) :
						     dotnet_decode_method(d, m, &method, ret);
	/* It was there all the while. */
	if (!err && (dotnet_method_read(d, m, f->key, &method) || !dotnet_is_same(&method, f)))
		err = -ESTALE;
	return err;
}
