// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogue.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define BLOCKS	  2048 /* of some four instructions each */
#define SLOTS	  4096
#define NONE	  UINT16_MAX
#define FRAME_MAX (1 << 24)
#define CALLEES	  2
#define NESTED	  2 /* calls of functions that only return because what they call does */
#define CALL_LEN  5 /* a direct one's, where return addresses are on the stack */
#define ASKED_MAX 2 /* ways of which it is asked whether what they call returns */
#define ASKED_INSNS 512
#define CALL_ALIGNED 16 /* of a stack pointer at a call: System V ABI, AMD64 supplement, section 3.2.2 */

/*
 * A place in the stack: n bytes from a register as it was at the start, or from
 * what lies there. INSN_NO_REG: from where the stack pointer went the at-th
 * time that it could not be told.
 */
struct place {
	uint8_t reg;
	bool loaded; /* from what lies at reg + at */
	int32_t at;
	int64_t n;
};

struct way {
	uint64_t at; /* behind the instruction that is applied */
	struct place sp;
	struct place called; /* the stack pointer at a call: the one furthest out */
	bool has_called;
	bool odd;	     /* not all calls were aligned alike */
	uint8_t nr_callees;  /* of the calls furthest out; more than there is room for: one is not known */
	uint64_t callees[CALLEES];
	uint64_t copied;     /* bit per register: it was made from the stack pointer, and is copy[] */
	int32_t times_lost;
	uint64_t saved;      /* bit per register: its value lies at from[] */
	uint64_t lost;
	uint64_t stored;     /* its value, as it was at the start, was put at to[] */
	struct place from[OTP_REGS_MAX];
	struct place to[OTP_REGS_MAX];
	struct place copy[OTP_REGS_MAX];
};

/* Instructions up to a branch or a call, or to one that control does not pass. */
struct block {
	uint64_t at;
	uint16_t from; /* the block before it on the way from the start */
	uint16_t next; /* in a list; then on the way to a return */
};

struct walk {
	const struct epilogue_arch *arch;
	struct binary *binary;
	struct way now;
	unsigned insns;		/* decoded, */
	unsigned insns_max;	/* and how many may be */
	unsigned asked;
	uint16_t nr;		/* of blocks; the first one is the start */
	uint16_t ready;		/* lists of those that are not read yet, */
	uint16_t later;		/* of those that one more call lies before, */
	uint16_t last;		/* and of those behind a jump to an unknown place */
	uint16_t slots[SLOTS];	/* blocks by address; 0: empty, else the number + 1 */
	struct block blocks[BLOCKS];
	uint64_t window_at;
	size_t window_len;
	uint8_t window[256];
};

/* Whether the window holds all bytes of an instruction at in; a jump may lead to any address. */
static bool window_covers(const struct walk *w, uint64_t in)
{
	return in < w->window_len && w->window_len - in >= w->arch->insn_max;
}

static int fetch(struct walk *w, uint64_t at, struct insn *ret)
{
	uint64_t in = at - w->window_at;
	ssize_t n;

	if (w->insns++ >= w->insns_max)
		return -ENOENT;
	if (!window_covers(w, in)) {
		n = binary_read_vaddr(w->binary, at, w->window, sizeof(w->window));
		if (n <= 0)
			return -ENOENT;
		w->window_at = at;
		w->window_len = (size_t)n;
		in = 0;
	}
	return w->arch->decode(w->window + in, w->window_len - in, ret) < 0 ? -ENOENT : 0;
}

/* --- blocks that can be reached --- */

/* Its slot, or the empty one where it belongs. */
static uint16_t *block_slot(struct walk *w, uint64_t at)
{
	size_t i = (size_t)hash_u64(at ^ hash_seed) % SLOTS;

	while (w->slots[i] && w->blocks[w->slots[i] - 1].at != at)
		i = (i + 1) % SLOTS;
	return &w->slots[i];
}

static void reach(struct walk *w, uint64_t at, uint16_t from, uint16_t *list)
{
	uint16_t *slot = block_slot(w, at);

	if (*slot || w->nr == BLOCKS)
		return;
	w->blocks[w->nr] = (struct block){.at = at, .from = from, .next = *list};
	*list = w->nr++;
	*slot = w->nr;
}

static bool ends_block(uint8_t kind)
{
	return kind == INSN_RET || kind == INSN_END || kind == INSN_JUMP || kind == INSN_BRANCH || kind == INSN_CALL ||
	       kind == INSN_SP_LOST;
}

/* true: the block ends with a return. */
static bool read_block(struct walk *w, uint16_t number)
{
	uint64_t at = w->blocks[number].at;
	struct insn i;

	while (fetch(w, at, &i) == 0) {
		at += i.len;
		if (i.kind == INSN_JUMP || i.kind == INSN_BRANCH)
			reach(w, at + (uint64_t)i.n, number, &w->ready);
		if (i.kind == INSN_BRANCH)
			reach(w, at, number, &w->ready);
		if (i.kind == INSN_CALL || i.kind == INSN_SP_LOST)
			reach(w, at, number, &w->later);
		if (i.kind == INSN_END && i.n == INSN_BY_REGISTER)
			reach(w, at, number, &w->last);
		if (ends_block(i.kind))
			return i.kind == INSN_RET;
	}
	return false;
}

static uint16_t take_list(uint16_t *list)
{
	const uint16_t first = *list;

	*list = NONE;
	return first;
}

/* NONE: all are read. */
static uint16_t next_block(struct walk *w)
{
	const uint16_t number = w->ready != NONE ? w->ready : take_list(w->later != NONE ? &w->later : &w->last);

	w->ready = number != NONE ? w->blocks[number].next : NONE;
	return number;
}

/* --- the way to a return --- */

static struct place above(struct place p, int64_t n)
{
	p.n += n;
	return p;
}

static bool same_origin(const struct place *a, const struct place *b)
{
	return a->reg == b->reg && a->loaded == b->loaded && a->at == b->at;
}

static uint64_t bit(uint8_t reg)
{
	return reg < OTP_REGS_MAX ? 1ULL << reg : 0;
}

static bool is_untouched(const struct way *y, uint8_t reg)
{
	return !((y->saved | y->lost) & bit(reg));
}

static void forget(struct way *y, uint8_t reg)
{
	y->lost |= bit(reg);
	y->saved &= ~bit(reg);
}

/* What was put there on the way is the register as it is now; else it lay there before. */
static void restore(struct way *y, uint8_t reg, struct place from)
{
	if (!bit(reg))
		return;
	y->lost &= ~bit(reg);
	if (y->stored & bit(reg) && same_origin(&y->to[reg], &from) && y->to[reg].n == from.n) {
		y->saved &= ~bit(reg);
		return;
	}
	y->from[reg] = from;
	y->saved |= bit(reg);
}

/* The first time: later on it may hold something else. */
static void store(struct way *y, uint8_t reg, struct place to)
{
	if (!bit(reg) || !is_untouched(y, reg) || y->stored & bit(reg))
		return;
	y->to[reg] = to;
	y->stored |= bit(reg);
}

/* The stack pointer becomes a register: where that still has the value that it had at the start. */
static bool sp_from(const struct epilogue_arch *arch, struct way *y, uint8_t reg, int64_t n)
{
	if (reg == arch->sp) {
		y->sp.n += n;
		return true;
	}
	if (y->copied & bit(reg)) {
		y->sp = above(y->copy[reg], n);
		return true;
	}
	if (!bit(reg) || !is_untouched(y, reg))
		return false;
	y->sp = (struct place){.reg = reg, .n = n};
	return true;
}

static bool sp_load(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	struct place from = i->base == arch->sp ? above(y->sp, i->n) : (struct place){.reg = i->base, .n = i->n};

	if (from.loaded || !bit(from.reg) || from.n < INT32_MIN || from.n > INT32_MAX || (i->base != arch->sp && !is_untouched(y, i->base)))
		return false;
	y->sp = (struct place){.reg = from.reg, .loaded = true, .at = (int32_t)from.n};
	return true;
}

static void sp_copy(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	forget(y, i->reg);
	if (!bit(i->reg) || (i->reg != arch->fp && !arch->tells_writes))
		return;
	y->copy[i->reg] = above(y->sp, i->n);
	y->copied |= bit(i->reg);
}

static void load(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	y->sp.n += i->before;
	if (i->base == arch->sp) {
		restore(y, i->reg, above(y->sp, i->n));
		restore(y, i->pair, above(y->sp, i->n + 8));
	} else {
		forget(y, i->reg);
		forget(y, i->pair);
	}
	y->copied &= ~(bit(i->reg) | bit(i->pair));
	y->sp.n += i->after;
}

static void store_beside_sp(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	y->sp.n += i->before;
	if (i->base == arch->sp) {
		store(y, i->reg, above(y->sp, i->n));
		store(y, i->pair, above(y->sp, i->n + 8));
	}
	y->sp.n += i->after;
}

static void push(struct way *y, const struct insn *i)
{
	y->sp.n -= i->n;
	if (i->n == 8)
		store(y, i->reg, y->sp);
}

static void pop(struct way *y, const struct insn *i)
{
	restore(y, i->reg, y->sp);
	y->sp.n += i->n;
}

static bool leave(const struct epilogue_arch *arch, struct way *y)
{
	if (!sp_from(arch, y, arch->fp, 0))
		return false;
	restore(y, arch->fp, y->sp);
	y->copied &= ~bit(arch->fp);
	y->sp.n += 8;
	return true;
}

/* callee 0: not known. */
static void call(const struct epilogue_arch *arch, struct way *y, uint64_t callee)
{
	const bool outer = !y->has_called || y->sp.n > y->called.n;

	if (!arch->on_stack)
		forget(y, arch->ra);
	y->odd |= y->has_called && same_origin(&y->called, &y->sp) && (y->sp.n - y->called.n) % CALL_ALIGNED;
	if (outer)
		y->nr_callees = 0;
	if (outer || y->sp.n == y->called.n) {
		if (callee && y->nr_callees < CALLEES)
			y->callees[y->nr_callees++] = callee;
		else
			y->nr_callees = CALLEES + 1;
	}
	if (outer)
		y->called = y->sp;
	y->has_called = true;
	y->copied &= bit(arch->fp);
}

/* false: the stack pointer cannot be told any more. */
static bool apply(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	switch (i->kind) {
	case INSN_PUSH:
		push(y, i);
		return true;
	case INSN_POP:
		pop(y, i);
		return i->reg != arch->sp;
	case INSN_SP_ADD:
		y->sp.n += i->n;
		return true;
	case INSN_SP_SET:
		return sp_from(arch, y, i->reg, i->n);
	case INSN_SP_LOAD:
		return sp_load(arch, y, i);
	case INSN_SP_COPY:
		sp_copy(arch, y, i);
		return true;
	case INSN_LOAD:
		load(arch, y, i);
		return true;
	case INSN_STORE:
		store_beside_sp(arch, y, i);
		return true;
	case INSN_LEAVE:
		return leave(arch, y);
	case INSN_CALL:
		call(arch, y, i->n ? y->at + (uint64_t)i->n : 0);
		return true;
	case INSN_SP_LOST:
		y->sp = (struct place){.reg = INSN_NO_REG, .at = ++y->times_lost};
		return true;
	default:
		return true;
	}
}

/* false: the return address is not where a row can say. */
static bool return_address(const struct epilogue_arch *arch, const struct way *y, uint8_t reg, int64_t cfa,
			   struct row *row)
{
	row->ra = arch->on_stack ? arch->ra : reg;
	if (arch->on_stack) {
		row->reg[row->ra] = (struct rule){.kind = RULE_OFFSET, .n = y->sp.n - cfa};
		return true;
	}
	return bit(reg) && row->reg[reg].kind != RULE_UNDEFINED;
}

static void saved_registers(const struct epilogue_arch *arch, const struct way *y, int64_t cfa, struct row *row)
{
	for (uint8_t i = 0; i < ARRAY_SIZE(y->from); i++) {
		if (i == arch->sp)
			continue;
		if (y->saved & bit(i) && same_origin(&y->from[i], &y->sp))
			row->reg[i] = (struct rule){.kind = RULE_OFFSET, .n = y->from[i].n - cfa};
		else if (!is_untouched(y, i))
			row->reg[i] = (struct rule){.kind = RULE_UNDEFINED};
	}
}

/* At the return: reg is the register that it goes to, where it goes to one. */
static int row_of(const struct epilogue_arch *arch, const struct way *y, uint8_t reg, struct row *row)
{
	int64_t cfa = y->sp.n + (arch->on_stack ? 8 : 0);

	if (!bit(y->sp.reg))
		return -ENOENT;
	memset(row, 0, sizeof(*row));
	row->flags = ROW_GUESS;
	row->cfa_kind = y->sp.loaded ? CFA_DEREF : CFA_REG;
	row->cfa_reg = y->sp.reg;
	row->cfa_n = y->sp.loaded ? y->sp.at : cfa;
	row->cfa_add = y->sp.loaded ? (int32_t)cfa : 0;
	saved_registers(arch, y, cfa, row);
	return return_address(arch, y, reg, cfa, row) ? 0 : -ENOENT;
}

enum worth { WAY_WRONG, WAY_IF_BACK, WAY_ODD, WAY_SOUND };

/*
 * A call that never comes back may be the last instruction of a function, and the way goes on in the next one: to a
 * return address that lies no further out than the call's own, or to a frame with which calls are not aligned. Some
 * compilers do not align calls within a file. Assembly may call with no frame at all: only where what it calls does
 * come back.
 */
static enum worth worth_of(const struct epilogue_arch *arch, const struct way *y, uint8_t reg)
{
	const struct place *ra = arch->on_stack ? &y->sp : &y->from[reg];

	if (!y->has_called || !same_origin(&y->called, ra) || (!arch->on_stack && !(y->saved & bit(reg))))
		return WAY_SOUND;
	if (arch->on_stack && ra->n == y->called.n)
		return WAY_IF_BACK;
	if (ra->n < y->called.n)
		return WAY_WRONG;
	return arch->on_stack && (y->odd || (ra->n + 8 - y->called.n) % CALL_ALIGNED) ? WAY_ODD : WAY_SOUND;
}

/* Where it is not told what is written, it is not the frame pointer. */
static void written(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	const uint64_t writes = i->writes == INSN_WRITES_ALL ? ~bit(arch->fp) : i->writes;

	if (i->kind != INSN_LEAVE) /* it reads what it writes */
		y->copied &= ~writes;
}

static bool follow_insn(struct walk *w, const struct insn *i)
{
	written(w->arch, &w->now, i);
	return apply(w->arch, &w->now, i) && w->now.sp.n < FRAME_MAX && w->now.sp.n > -FRAME_MAX;
}

/* What the block does to the registers; *ret: its last instruction. */
static bool follow_block(struct walk *w, uint16_t number, struct insn *ret)
{
	uint64_t at = w->blocks[number].at;

	do {
		if (fetch(w, at, ret) < 0)
			return false;
		at += ret->len;
		w->now.at = at;
		if (!follow_insn(w, ret))
			return false;
	} while (!ends_block(ret->kind));
	return true;
}

/* From the start to the block that ends with a return. */
static enum worth follow(struct walk *w, uint16_t last, struct row *row)
{
	struct insn i;
	uint16_t n = 0;

	for (uint16_t to = last; to; to = w->blocks[to].from, w->insns++)
		w->blocks[w->blocks[to].from].next = to;
	while (follow_block(w, n, &i)) {
		if (n == last)
			return row_of(w->arch, &w->now, i.reg, row) == 0 ? worth_of(w->arch, &w->now, i.reg) : WAY_WRONG;
		n = w->blocks[n].next;
	}
	return WAY_WRONG;
}

static void walk_init(struct walk *w, const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr,
		      unsigned insns_max)
{
	w->arch = arch;
	w->binary = b;
	w->insns = w->asked = 0;
	w->insns_max = insns_max;
	w->nr = 0;
	w->window_at = w->window_len = 0;
	w->ready = w->later = w->last = NONE;
	memset(w->slots, 0, sizeof(w->slots));
	reach(w, vaddr, 0, &w->ready);
}

static enum worth find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, unsigned nested,
		       struct row *ret);

/* Whether all that was called with no frame returns; nested: so many calls further in this is not asked. */
static bool callees_return(struct walk *w, unsigned nested)
{
	struct row row;

	if (!nested || w->now.nr_callees > CALLEES || w->asked++ >= ASKED_MAX)
		return false;
	for (unsigned i = 0; i < w->now.nr_callees; i++)
		if (find(w->arch, w->binary, w->now.callees[i], false, nested - 1, &row) == WAY_WRONG)
			return false;
	return true;
}

/* A direct call's target, by what it returns to. */
static uint64_t callee_before(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr)
{
	uint8_t code[CALL_LEN];
	struct insn i;

	if (!arch->on_stack || vaddr < sizeof(code) ||
	    binary_read_vaddr(b, vaddr - sizeof(code), code, sizeof(code)) != (ssize_t)sizeof(code) ||
	    arch->decode(code, sizeof(code), &i) < 0 || i.kind != INSN_CALL || i.len != sizeof(code))
		return 0;
	return vaddr + (uint64_t)i.n;
}

static enum worth find_way(struct walk *w, uint16_t last, bool called, uint64_t callee, unsigned nested,
			   struct row *ret)
{
	enum worth worth;

	w->now = (struct way){.sp = {.reg = w->arch->sp}};
	if (called)
		call(w->arch, &w->now, callee);
	worth = follow(w, last, ret);
	if (worth == WAY_IF_BACK)
		return callees_return(w, nested) ? WAY_ODD : WAY_WRONG;
	return worth;
}

static enum worth find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, unsigned nested,
		       struct row *ret)
{
	const uint64_t callee = called ? callee_before(arch, b, vaddr) : 0;
	enum worth found = WAY_WRONG, worth;
	struct row row;
	struct walk w;

	walk_init(&w, arch, b, vaddr, nested == NESTED ? EPILOGUE_INSNS : ASKED_INSNS);
	for (uint16_t n = next_block(&w); n != NONE && found != WAY_SOUND; n = next_block(&w)) {
		if (!read_block(&w, n))
			continue;
		worth = find_way(&w, n, called, callee, nested, &row);
		if (worth > found)
			*ret = row;
		found = MAX(found, worth);
	}
	return found;
}

int epilogue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, struct row *ret)
{
	return find(arch, b, vaddr, called, NESTED, ret) == WAY_WRONG ? -ENOENT : 0;
}
