// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of an assembly, by the image that the runtime has mapped: the header of
 * the runtime's part, streams, rows (ECMA-335, II.24).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define STREAMS_MAX 16
#define ROWS_MAX    (1u << 24)

/* --- columns --- */

/*
 * Of each table, a letter a column (II.22): 2 and 4 bytes; s, g, b an index of a heap; else one of rows: of a table, or a
 * coded one.
 */
static const char *const dotnet_columns[DOTNET_TABLES] = {
	[0x00] = "2sggg", [0x01] = "Rss", [0x02] = "4ssTfm", [0x03] = "f", [0x04] = "2sb", [0x05] = "m", [0x06] = "422sbp",
	[0x07] = "p", [0x08] = "22s", [0x09] = "tT", [0x0a] = "Msb", [0x0b] = "2Cb", [0x0c] = "AYb", [0x0d] = "Fb",
	[0x0e] = "2Sb", [0x0f] = "24t", [0x10] = "4f", [0x11] = "b", [0x12] = "te", [0x13] = "e", [0x14] = "2sT", [0x15] = "tq",
	[0x16] = "q", [0x17] = "2sb", [0x18] = "2mH", [0x19] = "tDD", [0x1a] = "s", [0x1b] = "b", [0x1c] = "2Wsu", [0x1d] = "4f",
	[0x1e] = "44", [0x1f] = "4", [0x20] = "42222" "4bss", [0x21] = "4", [0x22] = "444", [0x23] = "2222" "4bssb",
	[0x24] = "4a", [0x25] = "444a", [0x26] = "4sb", [0x27] = "44ssI", [0x28] = "44sI", [0x29] = "tt", [0x2a] = "22Os",
	[0x2b] = "Db", [0x2c] = "nT",
};

#define NONE 0xff
static const struct dotnet_index { char letter; uint8_t bits; uint8_t tables[22]; } dotnet_indices[] = {
	/* bits 0: of one table */
	{'f', 0, {0x04, NONE}}, {'m', 0, {0x06, NONE}}, {'p', 0, {0x08, NONE}}, {'t', 0, {0x02, NONE}}, {'e', 0, {0x14, NONE}},
	{'q', 0, {0x17, NONE}}, {'u', 0, {0x1a, NONE}}, {'a', 0, {0x23, NONE}}, {'n', 0, {0x2a, NONE}},
	{'R', 2, {0x00, 0x1a, 0x23, 0x01, NONE}}, /* ResolutionScope */
	{'T', 2, {0x02, 0x01, 0x1b, NONE}},	  /* TypeDefOrRef */
	{'M', 3, {0x02, 0x01, 0x1a, 0x06, 0x1b, NONE}}, /* MemberRefParent */
	{'C', 2, {0x04, 0x08, 0x17, NONE}},	  /* HasConstant */
	{'A', 5, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27,
		  0x28, 0x2a, 0x2c, 0x2b}}, /* HasCustomAttribute */
	{'Y', 3, {0x06, 0x0a, NONE}},	    /* CustomAttributeType */
	{'F', 1, {0x04, 0x08, NONE}},	    /* HasFieldMarshal */
	{'S', 2, {0x02, 0x06, 0x20, NONE}}, /* HasDeclSecurity */
	{'H', 1, {0x14, 0x17, NONE}},	    /* HasSemantics */
	{'D', 1, {0x06, 0x0a, NONE}},	    /* MethodDefOrRef */
	{'W', 1, {0x04, 0x06, NONE}},	    /* MemberForwarded */
	{'I', 2, {0x26, 0x23, 0x27, NONE}}, /* Implementation */
	{'O', 1, {0x02, 0x06, NONE}},	    /* TypeOrMethodDef */
};

static uint16_t dotnet_index_size(const struct dotnet_metadata *d, char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(dotnet_indices); i++) {
		const struct dotnet_index *x = &dotnet_indices[i];
		uint32_t most = 0;

		if (x->letter != letter)
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(x->tables) && x->tables[k] != NONE; k++)
			most = MAX(most, d->rows[x->tables[k]]);
		return most < 1u << (16 - x->bits) ? 2 : 4;
	}
	return 4;
}

static uint16_t dotnet_column_size(const struct dotnet_metadata *d, char letter)
{
	switch (letter) {
	case '2':
		return 2;
	case '4':
		return 4;
	case 's':
		return d->wide_strings ? 4 : 2;
	case 'g':
		return d->wide_guids ? 4 : 2;
	case 'b':
		return d->wide_blobs ? 4 : 2;
	default:
		return dotnet_index_size(d, letter);
	}
}

/* --- streams --- */

static int dotnet_count_rows(struct dotnet_metadata *d, uint64_t at, uint64_t valid)
{
	for (unsigned i = 0; i < 64; i++) {
		uint32_t rows;

		if (!(valid >> i & 1))
			continue;
		if (memory_u32(d->memory, at, &rows))
			return -EFAULT;
		if (i >= DOTNET_TABLES || rows > ROWS_MAX)
			return -EBADMSG;
		d->rows[i] = rows;
		at += 4;
	}
	for (unsigned i = 0; i < DOTNET_TABLES; i++) {
		for (const char *c = dotnet_columns[i]; *c; c++)
			d->row_size[i] += dotnet_column_size(d, *c);
		d->table[i] = at;
		at += (uint64_t)d->rows[i] * d->row_size[i];
	}
	return 0;
}

static int dotnet_tables(struct dotnet_metadata *d, uint64_t at)
{
	struct { uint32_t reserved; uint8_t major, minor, heaps, rid; uint64_t valid, sorted; } head;

	if (memory_read(d->memory, at, &head, sizeof(head)))
		return -EFAULT;
	d->wide_strings = head.heaps & 1;
	d->wide_guids = head.heaps & 2;
	d->wide_blobs = head.heaps & 4;
	/* 0x40: four bytes follow the counts, as of tables that were edited */
	return head.heaps & 0x40 ? -ENOTSUP : dotnet_count_rows(d, at + sizeof(head), head.valid);
}

/* *at: its header; then that of the next one. */
static int dotnet_stream(struct dotnet_metadata *d, uint64_t root, uint64_t *at, uint64_t *ret_tables)
{
	uint32_t head[2];
	char name[32];

	if (memory_read(d->memory, *at, head, sizeof(head)) || memory_string(d->memory, *at + 8, name, sizeof(name)))
		return -EFAULT;
	if (!strcmp(name, "#~"))
		*ret_tables = root + head[0];
	if (!strcmp(name, "#Strings")) {
		d->strings = root + head[0];
		d->strings_size = head[1];
	}
	if (!strcmp(name, "#Blob")) {
		d->blobs = root + head[0];
		d->blobs_size = head[1];
	}
	*at += 8 + (strlen(name) / 4 + 1) * 4;
	return 0;
}

int dotnet_metadata_open(const struct dotnet_pe *pe, struct dotnet_metadata *ret)
{
	uint64_t root = pe->metadata, at, tables = 0;
	struct memory *m = pe->memory;
	uint32_t len;
	uint16_t nr;
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	ret->memory = m;
	if (memory_u32(m, root + 12, &len) || len > 256 || memory_read(m, root + 16 + len + 2, &nr, sizeof(nr)))
		return -EFAULT;
	at = root + 16 + len + 4;
	for (unsigned i = 0; !err && i < MIN(nr, STREAMS_MAX); i++)
		err = dotnet_stream(ret, root, &at, &tables);
	if (!err && (!tables || !ret->strings))
		err = -EBADMSG;
	return err ? err : dotnet_tables(ret, tables);
}

int dotnet_cell(const struct dotnet_metadata *d, uint32_t table, uint32_t row, uint32_t column, uint32_t *ret)
{
	uint64_t at;

	if (!row || row > d->rows[table])
		return -ENOENT;
	at = d->table[table] + (uint64_t)(row - 1) * d->row_size[table];
	for (uint32_t i = 0; i < column; i++)
		at += dotnet_column_size(d, dotnet_columns[table][i]);
	*ret = 0;
	return memory_read(d->memory, at, ret, dotnet_column_size(d, dotnet_columns[table][column]));
}

int dotnet_string(const struct dotnet_metadata *d, uint32_t at, char *to, size_t size)
{
	return at < d->strings_size ? memory_string(d->memory, d->strings + at, to, size) : -EBADMSG;
}

int dotnet_blob(const struct dotnet_metadata *d, uint32_t at, uint8_t *to, uint32_t size, uint32_t *ret_len)
{
	uint8_t head[4] = {0};
	uint32_t len, skip;

	if (at >= d->blobs_size || memory_read(d->memory, d->blobs + at, head, MIN(sizeof(head), (size_t)(d->blobs_size - at))))
		return -EBADMSG;
	len = head[0];
	skip = 1;
	if (len >= 0x80) {
		skip = len < 0xc0 ? 2 : 4;
		len = len < 0xc0 ? (len & 0x3f) << 8 | head[1] :
				   (len & 0x1f) << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
	}
	*ret_len = MIN(len, size);
	return memory_read(d->memory, d->blobs + at + skip, to, *ret_len);
}
