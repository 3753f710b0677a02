// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"
#include "unwind/dwarf.h"

#define AUGMENTATION_MAX 16

/* Length and id that every entry begins with. */
struct entry {
	uint64_t at;     /* of the length field */
	uint64_t id_at;
	uint64_t id;
	uint64_t body;   /* what follows the id */
	uint64_t end;
	bool wide;       /* 64-bit DWARF: the id is as wide */
};

static int entry_read(struct cfi_reader *r, const struct cfi_section *s, uint64_t at, struct entry *ret)
{
	struct entry e = {.at = at};
	uint64_t len;

	reader_init(r, r->binary, s->by_offset, at, s->end);
	len = reader_uint(r, 4);
	if (r->error)
		return r->error;
	e.wide = len == 0xffffffff;
	if (e.wide)
		len = reader_uint(r, 8);
	if (r->error)
		return r->error;
	if (!len) {
		ret->end = r->pos;
		return -ENOENT;
	}
	e.id_at = r->pos;
	if (len > s->end - r->pos)
		return -EBADMSG;
	e.end = r->pos + len;
	r->end = e.end;
	e.id = reader_uint(r, e.wide ? 8 : 4);
	e.body = r->pos;
	*ret = e; /* also when broken inside: its end is known */
	return r->error;
}

static bool entry_is_cie(const struct entry *e, const struct cfi_section *s)
{
	if (!s->by_offset)
		return e->id == 0;
	return e->id == (e->wide ? ~0ULL : 0xffffffffULL);
}

/* .eh_frame counts back from the id field, .debug_frame from the section's start. */
static uint64_t entry_cie(const struct entry *e, const struct cfi_section *s)
{
	return s->by_offset ? s->start + e->id : e->id_at - e->id;
}

static int read_augmentation(struct cfi_reader *r, char *ret)
{
	for (unsigned i = 0; i < AUGMENTATION_MAX; i++) {
		ret[i] = (char)reader_uint(r, 1);
		if (r->error)
			return r->error;
		if (!ret[i])
			return 0;
	}
	return -EBADMSG;
}

/* The letters after 'z' (Linux Standard Base 5.0, section 10.6.1.1.1). */
static int augmentation_data(struct cfi_reader *r, const char *letters, struct cie *c)
{
	uint64_t len = reader_uleb(r), after;

	if (r->error || len > r->end - r->pos)
		return -EBADMSG;
	after = r->pos + len;
	for (; *letters && !r->error; letters++) {
		if (*letters == 'R') {
			c->encoding = (uint8_t)reader_uint(r, 1);
		} else if (*letters == 'S') {
			c->signal = true;
		} else if (*letters == 'L') {
			reader_uint(r, 1);
		} else if (*letters == 'P') {
			uint8_t encoding = (uint8_t)reader_uint(r, 1);

			/* Where the personality lies does not matter, only how long it is. */
			reader_encoded(r, encoding & PE_FORMAT, 0);
		} else if (*letters != 'B' && *letters != 'G') {
			break; /* unknown: its data ends where the length says */
		}
	}
	if (r->error)
		return r->error;
	r->pos = after;
	c->augmented = true;
	return 0;
}

/* Letters without data: the GNU assembler writes S into .debug_frame with no z in front. */
static bool plain_letters(const char *letters, struct cie *c)
{
	c->signal = strchr(letters, 'S') != NULL;
	return letters[strspn(letters, "SBG")] == '\0';
}

static int cie_body(struct cfi_reader *r, const struct cfi_section *s, struct cie *c)
{
	char letters[AUGMENTATION_MAX];
	uint64_t version = reader_uint(r, 1), ra;
	int err = read_augmentation(r, letters);

	if (err < 0)
		return err;
	if (version != 1 && version != 3 && version != 4)
		return -EBADMSG;
	if (version == 4 && (reader_uint(r, 1) != 8 || reader_uint(r, 1) != 0))
		return -EBADMSG;
	if (!strcmp(letters, "eh")) /* gcc 2: a pointer that nobody reads any more */
		reader_skip(r, 8);
	else if (letters[0] != 'z' && !plain_letters(letters, c))
		return -EBADMSG;
	c->code_align = reader_uleb(r);
	c->data_align = reader_sleb(r);
	ra = version == 1 ? reader_uint(r, 1) : reader_uleb(r);
	if (r->error || ra >= OTP_REGS_MAX)
		return -EBADMSG;
	c->ra = (uint8_t)ra;
	return letters[0] == 'z' ? augmentation_data(r, letters + 1, c) : 0;
}

static int cie_parse(struct cfi_reader *r, const struct cfi_section *s, uint64_t at, struct cie *ret)
{
	struct cie c = {.encoding = PE_ABSPTR};
	struct entry e;
	int err;

	if (at < s->start || at >= s->end)
		return -EBADMSG;
	err = entry_read(r, s, at, &e);
	if (err < 0 || !entry_is_cie(&e, s) || e.end - e.at > CFI_FDE_MAX)
		return -EBADMSG;
	err = cie_body(r, s, &c);
	if (err < 0)
		return err;
	c.insn = r->pos;
	c.insn_end = e.end;
	*ret = c;
	return 0;
}

static int fde_body(struct cfi_reader *r, const struct entry *e, struct fde *f)
{
	uint64_t range, skip;

	reader_init(r, r->binary, f->by_offset, e->body, e->end);
	f->start = reader_encoded(r, f->cie.encoding, 0);
	range = reader_encoded(r, f->cie.encoding & PE_FORMAT, 0);
	if (f->cie.augmented) {
		skip = reader_uleb(r);
		reader_skip(r, skip);
	}
	if (r->error || __builtin_add_overflow(f->start, range, &f->end))
		return -EBADMSG;
	f->insn = r->pos;
	f->insn_end = e->end;
	return 0;
}

static int fde_cie(struct cfi_reader *r, const struct cfi_section *s, uint64_t at, struct cie_memo *memo,
		   struct cie *ret)
{
	int err;

	if (memo && memo->filled && memo->at == at) {
		*ret = memo->cie;
		return 0;
	}
	err = cie_parse(r, s, at, ret);
	if (!err && memo)
		*memo = (struct cie_memo){.at = at, .cie = *ret, .filled = true};
	return err;
}

int fde_parse(struct binary *b, const struct cfi_section *s, uint64_t at, struct cie_memo *memo, struct fde *ret,
	      uint64_t *ret_next)
{
	struct cfi_reader r = {.binary = b};
	struct fde f = {.by_offset = s->by_offset};
	struct entry e = {0};
	int err;

	if (at < s->start || at >= s->end)
		return -EBADMSG;
	err = entry_read(&r, s, at, &e);
	if (ret_next && e.end)
		*ret_next = e.end;
	if (err < 0)
		return err;
	if (entry_is_cie(&e, s))
		return -ENOENT;
	if (e.end - e.at > CFI_FDE_MAX)
		return -EBADMSG;
	err = fde_cie(&r, s, entry_cie(&e, s), memo, &f.cie);
	if (err < 0)
		return err;
	err = fde_body(&r, &e, &f);
	if (err < 0)
		return err;
	*ret = f;
	return 0;
}
