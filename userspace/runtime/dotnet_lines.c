// SPDX-License-Identifier: Apache-2.0
/*
 * The portable PDB of an assembly. Its debug directory leads to one within the
 * assembly, compressed, or names a file, which is sought beside the assembly and
 * must have the id that is named with it (dotnet/runtime,
 * docs/design/specs/PE-COFF.md: Embedded Portable PDB, CodeView).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "process/beside.h"
#include "runtime/dotnet.h"

#define DEBUG_DIRECTORY 6
#define ENTRIES_MAX	32
#define TYPE_CODEVIEW	2
#define TYPE_EMBEDDED	17
#define EMBEDDED_MAGIC	0x4244504du /* "MPDB" */
#define CODEVIEW_MAGIC	0x53445352u /* "RSDS" */
#define PORTABLE	0x504d	    /* minor version of a CodeView entry */
#define CODEVIEW_PATH_MAX 1024u

#define PACKED_MAX   (3u << 20)
#define UNPACKED_MAX (16u << 20)
#define RATIO_MAX    1040 /* zlib packs 1032 : 1 at best */
#define KEPT_MAX     256
#define KEPT_BYTES   (24u << 20)

struct lines_entry { uint32_t characteristics, stamp; uint16_t major, minor; uint32_t type, size, rva, raw; };
struct lines_codeview { uint32_t magic; uint8_t guid[16]; uint32_t age; /* the path follows */ };

/* What tells whether it is the same one: packed ones have a size, and of files the place of their name. */
struct lines_key { uint64_t at; uint32_t packed, size; uint8_t id[DOTNET_PDB_ID]; uint32_t reserved; };

/* What the debug directory has. */
struct lines_debug {
	struct lines_key embedded; /* size 0: none */
	struct lines_key file;	   /* at: of its path; 0: none. size stays 0 */
	uint32_t path_max;	   /* bytes */
};

/* Those that were read: an assembly has many methods. Without bytes: one that is broken, or not to be had. */
static struct lines_pdb {
	struct lines_key key;
	uint8_t *bytes;
	uint32_t len;
} kept[KEPT_MAX];
static unsigned kept_next;

/* --- those that are kept --- */

static const struct lines_pdb *lines_find_kept(const struct lines_key *key)
{
	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (!memcmp(&kept[i].key, key, sizeof(*key)))
			return &kept[i];
	return NULL;
}

static uint32_t lines_kept_bytes(void)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		sum += kept[i].bytes ? kept[i].len : 0;
	return sum;
}

static struct lines_pdb *lines_evict(void)
{
	struct lines_pdb *k = &kept[kept_next++ % KEPT_MAX];

	free(k->bytes);
	*k = (struct lines_pdb){0};
	return k;
}

/* An entry for one of so many bytes. */
static struct lines_pdb *lines_make_room(uint32_t len)
{
	struct lines_pdb *k;

	do
		k = lines_evict();
	while (lines_kept_bytes() > KEPT_BYTES - len);
	k->len = len;
	return k;
}

/* --- one within the assembly --- */

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

static const struct lines_pdb *lines_embedded(struct memory *m, const struct lines_key *key)
{
	const struct lines_pdb *have = lines_find_kept(key);
	struct lines_pdb *k;
	int err;

	if (have)
		return have;
	k = lines_make_room(key->size);
	err = lines_unpack(m, key, &k->bytes);
	if (err && err != -EBADMSG)
		return NULL;
	k->key = *key;
	return k;
}

/* --- one beside it --- */

/* The last part of the path: where it was built, nobody is now. */
static int lines_file_name(struct memory *m, const struct lines_debug *d, char name[BESIDE_NAME_MAX])
{
	char path[CODEVIEW_PATH_MAX + 1];
	uint32_t max = MIN(d->path_max, CODEVIEW_PATH_MAX);
	const char *last, *nul;
	int err = memory_read(m, d->file.at, path, max);

	if (err)
		return err;
	nul = memchr(path, '\0', max);
	if (!nul)
		return -EBADMSG;
	for (last = nul; last > path && last[-1] != '/' && last[-1] != '\\'; last--)
		;
	if (!beside_name_is_sound(last, (size_t)(nul - last)))
		return -EBADMSG;
	memcpy(name, last, (size_t)(nul - last) + 1);
	return 0;
}

/* Where it is mapped is the assembly's base: in a program that is one file, within that file. */
static int lines_open(const struct dotnet_pe *pe, const struct lines_debug *d, int *ret_fd, uint32_t *ret_len)
{
	_cleanup_(closep) int fd = -1;
	char name[BESIDE_NAME_MAX];
	struct stat st;
	int err = lines_file_name(pe->memory, d, name);

	if (!err)
		err = memory_beside(pe->memory, pe->base, name, &fd);
	if (err)
		return err;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EBADMSG;
	if (st.st_size > BESIDE_BYTES_MAX)
		return -EFBIG;
	*ret_len = (uint32_t)st.st_size;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* All of it, whatever is written there by now. */
static int lines_read(int fd, uint32_t len, const uint8_t id[DOTNET_PDB_ID], uint8_t **ret)
{
	_cleanup_(freep) uint8_t *bytes = malloc(len);
	ssize_t n = 1;
	int err;

	if (!bytes)
		return -ENOMEM;
	for (uint32_t done = 0; done < len; done += (uint32_t)n) {
		n = pread(fd, bytes + done, len - done, done);
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
	}
	err = dotnet_pdb_check(bytes, len, id);
	if (!err)
		*ret = steal_ptr(&bytes);
	return err;
}

static enum runtime_line_file lines_outcome(int err)
{
	switch (err) {
	case 0:
		return RUNTIME_LINES_READ;
	case -ENOSYS:
		return RUNTIME_LINES_NOT_SOUGHT;
	case -ENOENT:
	case -ENOTDIR:
		return RUNTIME_LINES_MISSING;
	case -ESTALE:
		return RUNTIME_LINES_OTHER_BUILD;
	case -EPERM:
	case -EACCES:
	case -ELOOP:
	case -EXDEV:
		return RUNTIME_LINES_REFUSED;
	case -EFBIG:
		return RUNTIME_LINES_TOO_LARGE;
	case -EBADMSG:
	case -EFAULT:
		return RUNTIME_LINES_BROKEN;
	case -E2BIG:
		return RUNTIME_LINES_TOO_MANY;
	default:
		return RUNTIME_LINES_NO_ANSWER;
	}
}

/* Asked for once, whatever comes of it; but a replay has it for the function that needed it first. */
static const struct lines_pdb *lines_file(const struct dotnet_pe *pe, const struct lines_debug *d,
					  uint32_t *ret_outcome)
{
	const struct lines_pdb *have = lines_find_kept(&d->file);
	_cleanup_(closep) int fd = -1;
	struct lines_pdb *k;
	uint32_t len = 0;
	int err;

	if (have)
		return have;
	err = lines_open(pe, d, &fd, &len);
	if (err == -ENOSYS)
		return NULL;
	k = lines_make_room(len);
	if (!err)
		err = lines_read(fd, len, d->file.id, &k->bytes);
	*ret_outcome = lines_outcome(err);
	k->key = d->file;
	return k;
}

/* --- the debug directory --- */

/* One of a portable PDB, before those of others, as of the code that was compiled before. */
static int lines_read_codeview(const struct dotnet_pe *pe, const struct lines_entry *e, struct lines_debug *d)
{
	struct lines_codeview c;
	uint64_t at;

	if (d->file.at || e->size < sizeof(c))
		return 0;
	if (dotnet_pe_address(pe, e->rva, &at) || memory_read(pe->memory, at, &c, sizeof(c)))
		return -EFAULT;
	if (c.magic != CODEVIEW_MAGIC)
		return 0;
	memcpy(d->embedded.id, c.guid, sizeof(c.guid));
	memcpy(d->embedded.id + sizeof(c.guid), &e->stamp, sizeof(e->stamp));
	if (e->minor != PORTABLE)
		return 0;
	memcpy(d->file.id, d->embedded.id, sizeof(d->file.id));
	d->file.at = at + sizeof(c);
	d->path_max = e->size - (uint32_t)sizeof(c);
	return 0;
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

static int lines_find(const struct dotnet_pe *pe, struct lines_debug *ret)
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
			err = lines_read_codeview(pe, &e, ret);
		if (!err && e.type == TYPE_EMBEDDED)
			err = lines_read_embedded(pe, &e, &ret->embedded);
	}
	return err ? err : (ret->embedded.size || ret->file.at ? 0 : -ENOENT);
}

int dotnet_lines(const struct dotnet_pe *pe, uint32_t row, struct runtime_function *ret)
{
	const struct lines_pdb *pdb;
	struct lines_debug d = {0};
	int err = lines_find(pe, &d);

	if (err)
		return err;
	pdb = d.embedded.size ? lines_embedded(pe->memory, &d.embedded) : lines_file(pe, &d, &ret->line_file);
	return pdb && pdb->bytes ? dotnet_pdb_lines(pdb->bytes, pdb->len, row, ret) : -ENOENT;
}
