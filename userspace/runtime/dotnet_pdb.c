// SPDX-License-Identifier: Apache-2.0
/*
 * A portable PDB: tables in the form of an assembly's, of which those of
 * documents and of methods count; a method's lines are a blob of differences
 * (dotnet/runtime, docs/design/specs/PortablePdb-Metadata.md).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define MAGIC	      0x424a5342u
#define STREAMS_MAX   16
#define NAME_BYTES    32 /* of a stream's name, with a NUL */
#define ROWS_MAX      (1u << 24)
#define IL_MAX	      (1u << 28)
#define DOCUMENT      0x30 /* the first table of a PDB */
#define METHOD	      0x31
#define TABLES	      64
#define WIDE_GUIDS    2 /* of the heaps' sizes */
#define WIDE_BLOBS    4
#define EXTRA_DATA    0x40
#define PARTS_MAX     64 /* of a path */
#define LINE_END      0x20000000
#define POINTS_MAX    (RUNTIME_LINES_MAX - 1) /* and the end */

struct pdb_span { const uint8_t *at; size_t len; };

struct pdb {
	struct pdb_span tables, blobs, head;
	uint32_t nr_documents, nr_methods;
	uint32_t blob_width, guid_width, document_width;
	struct pdb_span rows; /* of documents, then methods */
};

/* --- parts --- */

static int pdb_sub(const struct pdb_span *s, uint64_t at, uint64_t len, struct pdb_span *ret)
{
	if (at > s->len || len > s->len - at)
		return -EBADMSG;
	*ret = (struct pdb_span){s->at + at, len};
	return 0;
}

static int pdb_get(const struct pdb_span *s, uint64_t at, void *to, size_t len)
{
	struct pdb_span part;

	if (pdb_sub(s, at, len, &part))
		return -EBADMSG;
	memcpy(to, part.at, len);
	return 0;
}

/* An index of a row or heap. */
static int pdb_index(const struct pdb_span *s, uint64_t at, uint32_t width, uint32_t *ret)
{
	*ret = 0;
	return pdb_get(s, at, ret, width);
}

static int pdb_blob(const struct pdb *p, uint32_t at, struct dotnet_bytes *ret)
{
	struct dotnet_bytes b = {.end = p->blobs.at + p->blobs.len};
	uint32_t len;

	if (at >= p->blobs.len)
		return -EBADMSG;
	b.at = p->blobs.at + at;
	if (dotnet_number(&b, &len) || len > (size_t)(b.end - b.at))
		return -EBADMSG;
	*ret = (struct dotnet_bytes){b.at, b.at + len};
	return 0;
}

/* --- streams and tables --- */

/* *at: a stream's header; then the next one. */
static int pdb_stream(struct pdb *p, const struct pdb_span *all, uint64_t *at)
{
	uint32_t head[2];
	struct pdb_span name, stream;
	const uint8_t *nul;

	if (pdb_get(all, *at, head, sizeof(head)) || pdb_sub(all, head[0], head[1], &stream))
		return -EBADMSG;
	name = (struct pdb_span){all->at + *at + sizeof(head), MIN((size_t)NAME_BYTES, all->len - *at - sizeof(head))};
	nul = memchr(name.at, '\0', name.len);
	if (!nul)
		return -EBADMSG;
	if (!strcmp((const char *)name.at, "#~"))
		p->tables = stream;
	if (!strcmp((const char *)name.at, "#Blob"))
		p->blobs = stream;
	if (!strcmp((const char *)name.at, "#Pdb"))
		p->head = stream;
	*at += sizeof(head) + ((size_t)(nul - name.at) / 4 + 1) * 4;
	return 0;
}

static int pdb_streams(struct pdb *p, const struct pdb_span *all)
{
	uint32_t magic, version;
	uint64_t at;
	uint16_t nr;

	if (pdb_get(all, 0, &magic, sizeof(magic)) || magic != MAGIC || pdb_get(all, 12, &version, sizeof(version)) ||
	    pdb_get(all, 16ULL + version + 2, &nr, sizeof(nr)) || nr > STREAMS_MAX)
		return -EBADMSG;
	at = 16ULL + version + 4;
	for (unsigned i = 0; i < nr; i++)
		if (pdb_stream(p, all, &at))
			return -EBADMSG;
	return p->tables.at && p->blobs.at ? 0 : -EBADMSG;
}

/* Tables of an assembly's own kind are in those of edits only, which nobody has. */
static int pdb_tables(struct pdb *p)
{
	struct { uint32_t reserved; uint8_t major, minor, heaps, rid; uint64_t valid, sorted; } head;
	uint32_t rows[TABLES] = {0};
	uint64_t at = sizeof(head);

	if (pdb_get(&p->tables, 0, &head, sizeof(head)) || head.heaps & EXTRA_DATA || head.valid & ((1ULL << DOCUMENT) - 1))
		return -EBADMSG;
	for (unsigned i = DOCUMENT; i < TABLES; i++) {
		if (!(head.valid >> i & 1))
			continue;
		if (pdb_get(&p->tables, at, &rows[i], sizeof(rows[i])) || rows[i] > ROWS_MAX)
			return -EBADMSG;
		at += sizeof(rows[i]);
	}
	p->nr_documents = rows[DOCUMENT];
	p->nr_methods = rows[METHOD];
	p->blob_width = head.heaps & WIDE_BLOBS ? 4 : 2;
	p->guid_width = head.heaps & WIDE_GUIDS ? 4 : 2;
	p->document_width = p->nr_documents < 1u << 16 ? 2 : 4;
	return pdb_sub(&p->tables, at, p->tables.len - at, &p->rows);
}

static uint32_t pdb_document_size(const struct pdb *p)
{
	return 2 * p->blob_width + 2 * p->guid_width;
}

/* --- documents --- */

static bool pdb_put(struct dotnet_text *t, const uint8_t *from, size_t len)
{
	if (len >= t->left || memchr(from, '\0', len))
		return false;
	memcpy(t->at, from, len);
	t->at += len;
	t->left -= len;
	*t->at = '\0';
	return true;
}

/* A separator, which may be none, then parts, each a blob of its own. */
static int pdb_path(const struct pdb *p, struct dotnet_bytes name, struct dotnet_text *t)
{
	struct dotnet_bytes part;
	uint8_t separator;
	uint32_t at;

	if (dotnet_byte(&name, &separator))
		return -EBADMSG;
	for (unsigned i = 0; name.at < name.end; i++) {
		if (i == PARTS_MAX || (i && separator && !pdb_put(t, &separator, 1)) || dotnet_number(&name, &at))
			return -EBADMSG;
		if (at && (pdb_blob(p, at, &part) || !pdb_put(t, part.at, (size_t)(part.end - part.at))))
			return -EBADMSG;
	}
	return 0;
}

static int pdb_document(const struct pdb *p, uint32_t row, char *to, size_t size)
{
	struct dotnet_text text = {.at = to, .left = size};
	struct dotnet_bytes name;
	uint32_t at;

	if (!row || row > p->nr_documents ||
	    pdb_index(&p->rows, (uint64_t)(row - 1) * pdb_document_size(p), p->blob_width, &at) || pdb_blob(p, at, &name) ||
	    pdb_path(p, name, &text))
		return -EBADMSG;
	return *to ? 0 : -ENOENT;
}

/* --- lines --- */

struct pdb_points {
	struct dotnet_bytes in;
	uint32_t il, document, own; /* the document at hand, and the method's */
	int64_t line;
	bool any, visible; /* there was a point, one with a line */
};

static int pdb_add(struct pdb_points *s, uint32_t line, struct runtime_function *ret)
{
	if (s->document != s->own)
		line = 0;
	if (ret->nr_lines == POINTS_MAX)
		return -E2BIG;
	ret->lines[ret->nr_lines++] = (struct runtime_line){.position = s->il, .line = line};
	if (line && (!ret->start_line || line < ret->start_line))
		ret->start_line = line;
	return 0;
}

/* Lines and columns of a point, which has an extent. */
static int pdb_visible(struct pdb_points *s, uint32_t lines, struct runtime_function *ret)
{
	uint32_t first_line, first_column;
	int32_t by, column;

	if (!s->visible) {
		if (dotnet_number(&s->in, &first_line) || dotnet_number(&s->in, &first_column))
			return -EBADMSG;
		s->line = first_line;
	} else {
		if (dotnet_signed(&s->in, &by) || dotnet_signed(&s->in, &column))
			return -EBADMSG;
		s->line += by;
	}
	s->visible = true;
	if (s->line <= 0 || s->line + lines >= LINE_END)
		return -EBADMSG;
	return pdb_add(s, (uint32_t)s->line, ret);
}

/* A point is hidden that has no extent. */
static int pdb_point(struct pdb_points *s, struct runtime_function *ret)
{
	uint32_t by, lines, columns;
	int32_t less;

	if (dotnet_number(&s->in, &by))
		return -EBADMSG;
	if (s->any && !by)
		return dotnet_number(&s->in, &s->document);
	s->any = true;
	s->il += by;
	if (s->il >= IL_MAX || dotnet_number(&s->in, &lines))
		return -EBADMSG;
	if (lines)
		return dotnet_signed(&s->in, &less) ? -EBADMSG : pdb_visible(s, lines, ret);
	if (dotnet_number(&s->in, &columns))
		return -EBADMSG;
	return columns ? pdb_visible(s, lines, ret) : pdb_add(s, 0, ret);
}

/* Of a method with more points than there is room for, the last one that fits must not be taken for all that follow. */
static int pdb_points(struct pdb_points *s, struct runtime_function *ret)
{
	int err = 0;

	while (!err && s->in.at < s->in.end)
		err = pdb_point(s, ret);
	if (err == -E2BIG) {
		ret->lines[ret->nr_lines - 1].line = 0;
		err = 0;
	}
	return err;
}

/* Behind the last place are those that the compiler says nothing of. */
static void pdb_end(struct runtime_function *ret)
{
	ret->lines[ret->nr_lines++] = (struct runtime_line){.position = DOTNET_NO_POSITION};
}

static int pdb_method(const struct pdb *p, uint32_t row, struct pdb_points *s)
{
	const uint64_t at = (uint64_t)p->nr_documents * pdb_document_size(p) +
			    (uint64_t)(row - 1) * (p->document_width + p->blob_width);
	uint32_t blob, signature;

	if (!row || row > p->nr_methods || pdb_index(&p->rows, at, p->document_width, &s->own) ||
	    pdb_index(&p->rows, at + p->document_width, p->blob_width, &blob) || !blob)
		return -ENOENT;
	if (pdb_blob(p, blob, &s->in) || dotnet_number(&s->in, &signature) || (!s->own && dotnet_number(&s->in, &s->own)))
		return -EBADMSG;
	s->document = s->own;
	return 0;
}

static void pdb_forget(struct runtime_function *ret)
{
	ret->nr_lines = ret->start_line = 0;
	ret->file[0] = '\0';
}

/* The head of the #Pdb stream begins with the id. */
int dotnet_pdb_check(const uint8_t *bytes, size_t len, const uint8_t id[DOTNET_PDB_ID])
{
	const struct pdb_span all = {bytes, len};
	uint8_t have[DOTNET_PDB_ID];
	struct pdb p = {0};
	int err = pdb_streams(&p, &all);

	if (!err)
		err = pdb_get(&p.head, 0, have, sizeof(have));
	return err ? err : (memcmp(have, id, sizeof(have)) != 0 ? -ESTALE : 0);
}

int dotnet_pdb_lines(const uint8_t *bytes, size_t len, uint32_t row, struct runtime_function *ret)
{
	const struct pdb_span all = {bytes, len};
	struct pdb p = {0};
	struct pdb_points s = {0};
	int err = pdb_streams(&p, &all);

	if (!err)
		err = pdb_tables(&p);
	if (!err)
		err = pdb_method(&p, row, &s);
	if (!err)
		err = pdb_document(&p, s.own, ret->file, sizeof(ret->file));
	if (!err)
		err = pdb_points(&s, ret);
	if (err)
		pdb_forget(ret);
	else
		pdb_end(ret);
	return err;
}
