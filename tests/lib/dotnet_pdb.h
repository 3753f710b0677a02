/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up portable PDB: two documents, and lines of two methods. Run's points
 * are at 0, 4, 7 (hidden) and 9, on the lines 10, 12 and 13 of /src/a.cs; Call's
 * are at 0, 2 and 4, on 20 and 21, and between them in the other document. Its id
 * is dotnet_pdb_id.
 */
#ifndef OTP_TESTS_DOTNET_PDB_H
#define OTP_TESTS_DOTNET_PDB_H

#include <stdint.h>
#include <string.h>

#define DOTNET_PDB_MAX	  512
#define DOTNET_PDB_HEAD	  0x4c
#define DOTNET_PDB_TABLES 0x60
#define DOTNET_PDB_BLOBS  0xb0
#define DOTNET_PDB_RUN	  25 /* places in the heap of blobs */
#define DOTNET_PDB_CALL	  45

static const char dotnet_pdb_id[20] = "the id of one build"; /* a GUID, and a stamp */
_Static_assert(DOTNET_PDB_HEAD + sizeof(dotnet_pdb_id) == DOTNET_PDB_TABLES, "it fits");

static const uint8_t dotnet_pdb_blobs[] = {
	0, 3, 's', 'r', 'c', 4, 'a', '.', 'c', 's', 4, 'b', '.', 'c', 's', 4, '/', 0, 1, 5, 4, '/', 0, 1, 10,
	/* Run: its variables; lines, columns, line and column of each */
	19, 0, 0, 0, 1, 10, 5, 4, 1, 0x7d, 4, 0, 3, 0, 0, 2, 0, 3, 2, 0,
	/* Call: its variables, its document; a point; another document, a point; the first one again, a point */
	21, 0, 1, 0, 0, 1, 20, 1, 0, 2, 2, 0, 1, 0x3c, 0, 0, 1, 2, 0, 1, 0x47, 0,
};

static inline void dotnet_pdb_put(uint8_t *to, size_t *at, const void *from, size_t len)
{
	memcpy(to + *at, from, len);
	*at += len;
}

static inline void dotnet_pdb_stream(uint8_t *to, size_t *at, uint32_t offset, uint32_t size, const char *name)
{
	const uint32_t head[] = {offset, size};

	dotnet_pdb_put(to, at, head, sizeof(head));
	strcpy((char *)to + *at, name);
	*at += (strlen(name) / 4 + 1) * 4;
}

/* How many bytes it has. */
static inline size_t dotnet_pdb_make(uint8_t to[DOTNET_PDB_MAX])
{
	static const uint16_t documents[2][4] = {{15, 0, 0, 0}, {20, 0, 0, 0}},
			      methods[2][2] = {{1, DOTNET_PDB_RUN}, {0, DOTNET_PDB_CALL}};
	static const uint32_t head[] = {0x424a5342, 0x00010001, 0, 12}, rows[] = {2, 2};
	const uint64_t valid = 3ULL << 0x30;
	const uint16_t nr = 3;
	size_t at = 0;

	memset(to, 0, DOTNET_PDB_MAX);
	dotnet_pdb_put(to, &at, head, sizeof(head));
	memcpy(to + at, "PDB v1.0", 8);
	memcpy(to + at + 14, &nr, sizeof(nr));
	at += 16;
	dotnet_pdb_stream(to, &at, DOTNET_PDB_HEAD, sizeof(dotnet_pdb_id), "#Pdb");
	dotnet_pdb_stream(to, &at, DOTNET_PDB_TABLES, DOTNET_PDB_BLOBS - DOTNET_PDB_TABLES, "#~");
	dotnet_pdb_stream(to, &at, DOTNET_PDB_BLOBS, sizeof(dotnet_pdb_blobs), "#Blob");
	memcpy(to + DOTNET_PDB_HEAD, dotnet_pdb_id, sizeof(dotnet_pdb_id));
	memcpy(to + DOTNET_PDB_TABLES + 8, &valid, sizeof(valid));
	at = DOTNET_PDB_TABLES + 24;
	dotnet_pdb_put(to, &at, rows, sizeof(rows));
	dotnet_pdb_put(to, &at, documents, sizeof(documents));
	dotnet_pdb_put(to, &at, methods, sizeof(methods));
	memcpy(to + DOTNET_PDB_BLOBS, dotnet_pdb_blobs, sizeof(dotnet_pdb_blobs));
	return DOTNET_PDB_BLOBS + sizeof(dotnet_pdb_blobs);
}

#endif
