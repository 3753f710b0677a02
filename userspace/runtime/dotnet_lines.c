// SPDX-License-Identifier: Apache-2.0
/*
 * The portable PDB in an assembly: its debug directory leads to it, compressed
 * (dotnet/runtime, docs/design/specs/PE-COFF.md: Embedded Portable PDB Debug
 * Directory Entry). One in a file of its own is not in the process' memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define DEBUG_DIRECTORY 6
#define ENTRIES_MAX	32
#define TYPE_CODEVIEW	2
#define TYPE_EMBEDDED	17
#define EMBEDDED_MAGIC	0x4244504du /* "MPDB" */
#define ID_BYTES	20 /* "RSDS" and a GUID */

#define PACKED_MAX   (3u << 20)
#define UNPACKED_MAX (16u << 20)
#define RATIO_MAX    1040 /* zlib packs 1032 : 1 at best */
#define KEPT_MAX     16
#define KEPT_BYTES   (24u << 20)

struct lines_entry { uint32_t characteristics, stamp; uint16_t major, minor; uint32_t type, size, rva, raw; };

/* What tells whether it is the same one. */
struct lines_key { uint64_t at; uint32_t packed, size, stamp; uint8_t id[ID_BYTES]; };

/* Those that were unpacked: an assembly has many methods. Without bytes: one that is broken. */
static struct lines_pdb {
	struct lines_key key;
	uint8_t *bytes;
} kept[KEPT_MAX];
static unsigned kept_next;

/* --- unpacked ones --- */

static int lines_inflate(const uint8_t *from, uint32_t packed, uint8_t *to, uint32_t size)
{
	z_stream z = {.next_in = (Bytef *)from, .avail_in = packed, .next_out = to, .avail_out = size};
	int r = inflateInit2(&z, -MAX_WBITS);

	if (r != Z_OK)
		return -ENOMEM;
	r = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return r == Z_STREAM_END && z.total_out == size ? 0 : -EBADMSG;
}

static int lines_unpack(struct memory *m, const struct lines_key *key, uint8_t **ret)
{
	_cleanup_(freep) uint8_t *from = malloc(key->packed);
	_cleanup_(freep) uint8_t *to = malloc(key->size);
	int err = from && to ? memory_read(m, key->at, from, key->packed) : -ENOMEM;

	if (!err)
		err = lines_inflate(from, key->packed, to, key->size);
	if (!err)
		*ret = steal_ptr(&to);
	return err;
}

static uint32_t lines_kept_bytes(void)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		sum += kept[i].bytes ? kept[i].key.size : 0;
	return sum;
}

static struct lines_pdb *lines_evict(void)
{
	struct lines_pdb *k = &kept[kept_next++ % KEPT_MAX];

	free(k->bytes);
	*k = (struct lines_pdb){0};
	return k;
}

static const struct lines_pdb *lines_keep(struct memory *m, const struct lines_key *key)
{
	struct lines_pdb *k;
	int err;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (!memcmp(&kept[i].key, key, sizeof(*key)))
			return &kept[i];
	do
		k = lines_evict();
	while (lines_kept_bytes() > KEPT_BYTES - key->size);
	err = lines_unpack(m, key, &k->bytes);
	if (err && err != -EBADMSG)
		return NULL;
	k->key = *key;
	return k;
}

/* --- the debug directory --- */

static int lines_read_id(const struct dotnet_pe *pe, const struct lines_entry *e, struct lines_key *key)
{
	uint64_t at;

	key->stamp = e->stamp;
	return dotnet_pe_address(pe, e->rva, &at) || memory_read(pe->memory, at, key->id, sizeof(key->id)) ? -EFAULT : 0;
}

static int lines_read_embedded(const struct dotnet_pe *pe, const struct lines_entry *e, struct lines_key *key)
{
	uint32_t head[2];

	if (dotnet_pe_address(pe, e->rva, &key->at) || memory_read(pe->memory, key->at, head, sizeof(head)))
		return -EFAULT;
	if (head[0] != EMBEDDED_MAGIC || e->size <= sizeof(head))
		return -EBADMSG;
	key->at += sizeof(head);
	key->packed = e->size - (uint32_t)sizeof(head);
	key->size = head[1];
	if (!key->size || key->packed > PACKED_MAX || key->size > UNPACKED_MAX || key->size / RATIO_MAX > key->packed)
		return -EFBIG;
	return 0;
}

static int lines_find(const struct dotnet_pe *pe, struct lines_key *key)
{
	struct dotnet_directory d;
	struct lines_entry e;
	uint64_t at;
	int err = 0;

	if (dotnet_pe_directory(pe, DEBUG_DIRECTORY, &d) || !d.rva || dotnet_pe_address(pe, d.rva, &at))
		return -ENOENT;
	for (uint32_t i = 0; !err && i < MIN(d.size / (uint32_t)sizeof(e), (uint32_t)ENTRIES_MAX); i++) {
		err = memory_read(pe->memory, at + sizeof(e) * i, &e, sizeof(e));
		if (!err && e.type == TYPE_CODEVIEW)
			err = lines_read_id(pe, &e, key);
		if (!err && e.type == TYPE_EMBEDDED)
			err = lines_read_embedded(pe, &e, key);
	}
	return err ? err : (key->size ? 0 : -ENOENT);
}

int dotnet_lines(const struct dotnet_pe *pe, uint32_t row, struct runtime_function *ret)
{
	const struct lines_pdb *pdb;
	struct lines_key key = {0};
	int err = lines_find(pe, &key);

	if (err)
		return err;
	pdb = lines_keep(pe->memory, &key);
	return pdb && pdb->bytes ? dotnet_pdb_lines(pdb->bytes, pdb->key.size, row, ret) : -ENOENT;
}
