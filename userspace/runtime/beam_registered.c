// SPDX-License-Identifier: Apache-2.0
/*
 * A process by the name that it is registered under. The table of names is a
 * variable without a symbol, but looks like nothing else in the file's data:
 * seven functions, and further on the table's own name (struct hash,
 * erts/emulator/beam/hash.h; register.[ch]). Where a name is in it, its hash says,
 * which is the atom's number. Offsets: read from processes of OTP 23, 25, 27 and 29.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define TABLE_NAME "process_reg"
#define PIECE	   (64u << 10)
#define DATA_MAX   (2u << 20)
#define SLOT_BITS  20u /* of a table at most */
#define SLOT_MAX   64u /* names in a slot that are looked at */
#define GOLDEN	   11400714819323198485ULL /* hash_get_slot */

/* struct hash. */
struct beam_registry {
	uint64_t function[7];
	uint32_t is_allocated, type;
	uint64_t name;
	uint32_t shift, max_shift, shrinks, grows;
	uint64_t count, slots;
};

/* struct reg_proc. */
struct beam_named { uint64_t next, hash, process, port, name; };

static bool beam_registry_is_code(const struct runtime_file *file, uint64_t address)
{
	const struct binary *f = file->binary;

	for (uint16_t i = 0; i < f->nr_segments; i++)
		if (f->segments[i].flags & PF_X && address - file->bias - f->segments[i].vaddr < f->segments[i].memsz)
			return true;
	return false;
}

static bool beam_registry_is(const struct runtime_file *file, struct memory *m, const struct beam_registry *t)
{
	char name[sizeof(TABLE_NAME)];

	if (t->is_allocated || t->shift > 63 || t->shift < 64 - SLOT_BITS)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(t->function); i++)
		if (!beam_registry_is_code(file, t->function[i]))
			return false;
	return !memory_read(m, t->name, name, sizeof(name)) && !memcmp(name, TABLE_NAME, sizeof(name));
}

/* In the data between both addresses. */
static int beam_registry_search(const struct runtime_file *file, struct memory *m, uint64_t from, uint64_t to,
				struct beam_registry *ret)
{
	uint8_t bytes[PIECE];
	uint64_t size;

	/* It may lie across pieces. */
	for (; to - from >= sizeof(*ret); from += size - sizeof(*ret) + 8) {
		size = MIN(to - from, (uint64_t)sizeof(bytes));
		if (memory_read(m, from, bytes, size))
			return -EFAULT;
		for (size_t i = 0; i + sizeof(*ret) <= size; i += 8) {
			memcpy(ret, bytes + i, sizeof(*ret));
			if (beam_registry_is(file, m, ret))
				return 0;
		}
		if (size < sizeof(bytes))
			break;
	}
	return -ENOENT;
}

static int beam_registry_find(const struct runtime_file *file, struct memory *m, struct beam_registry *ret)
{
	const struct binary *f = file->binary;

	for (uint16_t i = 0; i < f->nr_segments; i++) {
		uint64_t at = (file->bias + f->segments[i].vaddr + 7) & ~7ULL;

		if (f->segments[i].flags & PF_W &&
		    !beam_registry_search(file, m, at, at + MIN(f->segments[i].memsz, (uint64_t)DATA_MAX) / 8 * 8, ret))
			return 0;
	}
	return -ENOENT;
}

/* A process that is registered leads to its name. */
static bool beam_registry_leads_back(const struct beam *b, struct memory *m, uint64_t at, const struct beam_named *n)
{
	uint64_t back;

	return n->process && !n->port && !memory_u64(m, n->process + (uint64_t)beam_rows[b->row].registered, &back) &&
	       back == at;
}

int beam_registered(const struct runtime_file *file, struct memory *m, const struct beam *b, uint64_t name,
		    uint64_t *ret)
{
	struct beam_registry t;
	struct beam_named n;
	uint64_t at;
	int err = beam_registry_find(file, m, &t);

	if (err)
		return err;
	err = memory_u64(m, t.slots + 8 * (GOLDEN * (name >> BEAM_ATOM_BITS) >> t.shift), &at);
	for (uint32_t i = 0; !err && at && i < SLOT_MAX; i++, at = n.next) {
		err = memory_read(m, at, &n, sizeof(n));
		if (err || n.name != name)
			continue;
		if (!beam_registry_leads_back(b, m, at, &n))
			break;
		*ret = n.process;
		return 0;
	}
	return err ? err : -ENOENT;
}
