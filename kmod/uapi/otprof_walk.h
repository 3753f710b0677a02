/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * Interpreters' frames: how a sampler finds and copies them in the tick. They
 * lie on the heap and change under us, so they are copied there; what they mean
 * is read later. The walker knows no language: a plan, made in userspace for one
 * process, says where the list of frames begins, how it goes on, and which words
 * of each frame to keep.
 *
 * Who uses it: bpf/ and kmod/ walk by it, each with a reader of its own, as do
 * tests in userspace; the engine makes plans and reads what was copied.
 * Contexts: the tick. Bounds: OTP_WALK_FRAMES frames of a walk, OTP_WALK_BYTES
 * and OTP_WALK_READS of a sample, whatever a plan or a process' memory says.
 *
 * Who walks defines, before it includes this:
 *   OTP_WALK_READ(to, len, from)   reads user memory; 0, or anything else; len
 *                                  is a multiple of 8 and at most OTP_WALK_WINDOW
 *   OTP_WALK_OPAQUE(x)             hides the value of a 64-bit variable from the
 *                                  compiler, so that it keeps the bound that
 *                                  follows (bpf/), or nothing
 */
#ifndef OTPROF_WALK_UAPI_H
#define OTPROF_WALK_UAPI_H

#include "kmod/uapi/otprof.h"

#define OTP_WALK_PLANS	2   /* of a process */
#define OTP_WALK_CHAIN	6
#define OTP_WALK_SUBS	4
#define OTP_WALK_ALSO	2
#define OTP_WALK_WORDS	16  /* of 8 bytes, that one read copies; a mask has a bit for each */
#define OTP_WALK_FRAMES 512 /* of one plan */
#define OTP_WALK_BYTES	16384 /* of all sections of one sample, heads included */
#define OTP_WALK_READS	2048 /* of one sample: so long a walk holds up interrupts */
#define OTP_WALK_WINDOW 1024 /* bytes that one read of several frames copies */
#define OTP_WALK_PAGE	4096 /* such a read stays in the pages of the frame that it is for: it fails as that one's would */
#define OTP_WALK_FAULT	64   /* reads that one counts as which fails: a fault takes that much longer */
#define OTP_WALK_UNREAD (~0ULL) /* a word from elsewhere that cannot be read */
#define OTP_WALK_SEEK	(32 << 10) /* bytes of the thread's stack in which calls are sought */

/* Where the chain of pointers to the list begins. */
enum otp_walk_start {
	OTP_WALK_NONE = 0, /* no plan */
	OTP_WALK_AT = 1,   /* base is an address */
	OTP_WALK_TLS = 2,  /* base is an offset from otp_sample.tls_base */
	OTP_WALK_CALL = 3, /* base is a return address, which is sought on the thread's stack */
};

/* How one frame leads to the next. */
enum otp_walk_step {
	OTP_WALK_LINK = 0,  /* a pointer, word link of the frame; 0 ends the list */
	OTP_WALK_ARRAY = 1, /* step bytes on, to the last one of an array */
	OTP_WALK_STACK = 2, /* no frames: bytes of a stack that the thread is not on, OTP_WALK_BLOCK at a time */
	OTP_WALK_SLOTS = 3, /* frames on an interpreter's own stack, which a register of its code points into */
	OTP_WALK_CHUNKS = 4, /* as STACK, of frames that lie in objects of the heap as long as the thread does not need them */
};

#define OTP_WALK_BLOCK (8 * OTP_WALK_WORDS)
#define OTP_WALK_BLOCKS 116 /* of a sample's bytes, with their addresses, behind a root with all its words */

/*
 * More words, behind a pointer: of the frame (from 0), or of an earlier sub
 * (from 1 on). They serve as cookies: what tells whether an object is still the
 * one that the frame meant when its metadata is read, later.
 */
struct otp_walk_sub {
	__u8 from;
	__u8 at;     /* word that holds the pointer */
	__u8 tag;    /* bits of the pointer to clear */
	__u8 high;   /* how many of its highest bits to clear */
	__s16 off;   /* bytes from the pointer to the first word */
	__u16 keep;  /* words to keep */
};

/* An end of an array: *(node + at) + *(__s32 *)(node + count_at) * scale + bias; count_at is not read if scale is 0. */
struct otp_walk_edge {
	__s16 at;
	__s16 count_at;
	__s32 scale;
	__s32 bias;
};

/*
 * SLOTS: what leads to the innermost frame, and to the stack of whoever resumed
 * a coroutine. The interpreter keeps frame and place in registers while its code
 * runs, and writes them to memory (the node's first; place, in its C frame) before
 * it calls C code. Compiled code leaves its frame in the root.
 */
struct otp_walk_slots {
	__u64 code; /* the interpreter's code; 0: none */
	__u32 code_len;
	__u32 store;	    /* the instruction that writes the link of a frame that was entered */
	__u8 at_reg, place_reg; /* of the frame and of the place in it, while the thread runs code */
	__s16 compiled;	    /* from the root: the frame of compiled code that runs; 0 there: none runs */
	__s16 limit;	    /* from the node: the last slot */
	__s16 c_frame;	    /* from the node: the innermost C frame of the interpreter, 0 there: it does not run */
	__s16 place, prev, back, resumer; /* from a C frame; prev 0 there: the outermost of its node */
};

/*
 * CHUNKS: the objects that hold a coroutine's outer frames. Distances from a
 * chunk that are read as 32-bit numbers lie within its first block.
 */
struct otp_walk_chunks {
	__u64 base;  /* pointers to chunks are of 32 bits, shifted, and count from here */
	__u64 also;  /* a word that is anywhere, and copied with them */
	__u8 shift;
	__u8 wide;   /* 1: they are of 64 bits */
	__s16 owner; /* from the node: the coroutine; a whole pointer */
	__s16 chunk; /* from the coroutine: its innermost chunk */
	__s16 outer; /* from a chunk: the next one */
	__s16 sp, end; /* from a chunk: where its frames begin and end, in words */
	__s16 stack; /* from a chunk: the word that those count from */
	__u16 reserved;
};

/* ARRAY: addresses of words that are copied behind the root's, OTP_WALK_UNREAD for one that cannot be read; 0: none. */
struct otp_walk_also {
	__u64 at[OTP_WALK_ALSO];
	__u64 reserved[2];
};

/*
 * LINK: a table that grows by one slot after the other (linear hashing). The slot of a key is its hash by the mask,
 * which is of the size that the table grows to; if that slot is not in use yet, by one bit less.
 */
struct otp_walk_hashed {
	__u64 hash;
	__s16 size;  /* from the table: the mask, and behind it how many slots are in use, of 32 bits each */
	__s16 slots; /* from the table: the first slot, a pointer; 0: there is no table */
	__u32 reserved[5];
};

/*
 * STACK: of an interpreter, whose code has the stack pointer in a register; a word that is anywhere. Of compiled code,
 * where its frame pointer was saved.
 */
struct otp_walk_held {
	__u64 also; /* 0: none */
	__u64 code;
	__u32 code_len;
	__u32 at_reg; /* 0: none */
	__s16 frame;  /* from the node; 0: none */
	__u16 home;   /* 1: the first word of where via leads is what the chain's first pointer is on the thread's own stack */
	__u16 reserved[2];
};

/*
 * The chain: from the start, each step reads the pointer at its offset from the
 * last. After root_at steps it is at the root (a thread's state), of which words
 * may be kept once for the sample, also where the chain ends in a 0 further on.
 * Of a LINK, with via, words of an object that the root has a pointer to follow
 * them: OTP_WALK_ROOT_MORE of them, via_at bytes from where the pointer at via
 * bytes from the root leads; zeros if that is 0, or cannot be read.
 * Of a LINK, with hashed.slots, it leads to a table, and what is in the key's slot
 * there to the first frame.
 * Where it ends lies the first frame, or for
 * ARRAY the node that describes an array. After an array, the pointer at outer
 * bytes from its node leads to the next node; outer 0: there is none.
 *
 * CALL: the interpreter's states lie on the heap, and any of them may run, but each
 * that runs has called a function which keeps what to return to, in case of an
 * error, in its own frame, and its address in the state. So above the thread's stack
 * pointer each word is sought that equals base; the word call_root bytes from it
 * is a root if the pointer call_proof bytes into that leads to call_at bytes from
 * the word: what a call that is over has left behind does not. The chain begins
 * there. After a list has ended, the next root is sought, that of whoever resumed
 * a coroutine, until the stack ends.
 *
 * A STACK is what a coroutine left behind when its thread went to another stack.
 * The node describes it: last is its upper end, low is where its lower end is
 * read, first is the stack pointer that was saved. With via, another saved one is
 * at via_at from where the pointer at via leads, and goes before first's. One that
 * is not within the stack does not count; a stack that has none, or that the
 * thread's own stack pointer is in, is not copied. The last block ends where the
 * stack ends, the first one holds the 8 bytes below the saved stack pointer,
 * which follows the root's words, with OTP_WALK_VIA set if it is via's. Where
 * frames_max blocks do not reach the end, the last ones are those of the outermost
 * bytes (far): most likely a frame in between is a large one.
 * With held.frame, these hold frame records, to which the frame pointer that was
 * saved leads, as far as they are not in the bytes before; and outermost bytes, where
 * a record leads to none. The first record ends at via's stack pointer, if that counts.
 * A block of records has OTP_WALK_MISSING(0) and the address of the first one, then of
 * each two words: the address of the next one, 0 if there is none, and a return
 * address. Behind the last one are zeros.
 * With held.home, the chain's first pointer tells whether the thread has saved the
 * stack pointer, as it does before it goes to its own stack for more than a call of a
 * C function that keeps it in a register. Where it has not, or is in a signal handler,
 * the outermost bytes are copied, as many as may be; first's counts, if it is in the
 * stack, else it is as if via's were where they begin.
 * With held.at_reg, an interpreter has its stack pointer in that register: while its
 * code runs, that goes before first's. In what the code calls, first's is where the
 * copy begins, be it below the stack: then it begins at the lower end. With either, it
 * is a guess, below which there may be pages that were never touched: up to the first
 * block that can be read, the blocks of a page that cannot be are passed by. With held.also,
 * the word there, a counter, follows the root's words, or OTP_WALK_UNREAD.
 *
 * CHUNKS: the node leads to the coroutine, that to its chunks, innermost first; of
 * each its first block, with OTP_WALK_MISSING(0), then the blocks of its frames up
 * to where they end; the first of those holds the 16 bytes below its stack pointer.
 * Behind the root's words follow the node, the coroutine, and the word from
 * elsewhere, or OTP_WALK_UNREAD. There are at most OTP_WALK_CHUNKS_MAX.
 *
 * SLOTS: a frame ends where its address is; the word link leads to the next one,
 * which lies as many bytes lower as it says, without its lowest bits; or, if it is
 * an address in bytecode, as many slots as the instruction before that names. The last one is where last
 * says. If the outermost C frame of a node was called by the interpreter's code,
 * that belongs to the node of the resumer, whose frames go on. Behind the root's
 * words follow the innermost frame, with enum otp_walk_slots_from in its lowest
 * bits, the place in it, and the C frame. A frame that is being entered or left
 * may not hold its link yet, or any more: it is the place then.
 */
struct otp_walk {
	__u8 start; /* enum otp_walk_start */
	__u8 step;  /* enum otp_walk_step */
	__u8 nr_chain;
	__u8 nr_subs;
	__u8 root_at; /* 0: where the start is */
	__u8 link;    /* LINK: the word of the frame */
	__u8 tag;     /* bits to clear in links, and in the chain's last pointer */
	__u8 below;   /* LINK: 1: the next frame mostly lies a little below, as on a stack that grows upward */
	__u64 base;
	__s32 chain[OTP_WALK_CHAIN];
	__s32 root_off; /* bytes from the root to the first of its words */
	__u16 root_keep;
	__u16 frames_max; /* at most OTP_WALK_FRAMES */
	__s16 copy_off;	  /* bytes from the frame to the first of its words */
	__u16 keep;	  /* words of each frame to keep */
	__s32 stride;	  /* ARRAY: bytes from one frame to the next */
	union {
		__s32 outer; /* ARRAY */
		__s32 far;   /* STACK: the outermost bytes that are copied where not all are, whole blocks; 0: none */
	};
	struct otp_walk_edge first, last; /* ARRAY: the first frame, and the last */
	struct otp_walk_sub sub[OTP_WALK_SUBS];
	/*
	 * Which frames have subs: a bit for each value of four bits of one of the frame's words; 0: all. In others, the same
	 * words may be anything, and a read that fails costs as much as OTP_WALK_FAULT.
	 */
	__u32 kinds;
	union {
		struct { __s16 low, via, via_at; }; /* STACK: from the node; LINK: via, from the root, alone; via 0: none */
		struct { __s16 call_root, call_proof, call_at; }; /* CALL */
	};
	__u8 kind_word, kind_shift;
	union {
		struct otp_walk_slots slots;
		struct otp_walk_chunks chunks;
		struct otp_walk_also also;
		struct otp_walk_held held;
		struct otp_walk_hashed hashed;
	};
};

#define OTP_WALK_VIA 1

/* Where the address of the innermost frame of SLOTS was read. */
enum otp_walk_slots_from {
	OTP_WALK_FROM_NODE = 0,
	OTP_WALK_FROM_REGISTER = 1,
	OTP_WALK_FROM_COMPILED = 2, /* compiled code runs: the place is not known */
};
#define OTP_WALK_FROM_MASK	7ULL
#define OTP_WALK_SLOT_TYPE	3ULL	/* bits of a link: 0: it is an address in bytecode */
#define OTP_WALK_SLOT_TYPES	7ULL	/* bits that are not part of a distance */
#define OTP_WALK_SLOT_HEAD	16	/* bytes of a frame's head */
#define OTP_WALK_SLOT_C_FRAMES	4	/* of a node that is left */
#define OTP_WALK_REGS		32
#define OTP_WALK_CHUNKS_MAX	8	/* of a walk */
#define OTP_WALK_CHUNK_WORDS	(1 << 20) /* of a chunk */

/* The walks of a process; they hold for its exec identity, and for forks of it until they exec. */
struct otp_walks {
	__u32 generation; /* not 0 */
	__u32 reserved;
	__u64 start_ns;
	__u64 exec_id;
	struct otp_walk plan[OTP_WALK_PLANS];
};

/*
 * Why a walk ended. The number of a retired end is never reused.
 *   X(number, NAME, "name", "what happened")
 */
#define OTP_WALK_ENDS(X)                                                              \
	X(0, DONE, "done", "the list ended")                                          \
	X(1, NO_ROOT, "no_root", "a pointer that leads to the list was 0")            \
	X(2, UNREADABLE, "unreadable", "memory could not be read")                    \
	X(3, FRAMES, "frames", "the list has more frames than one walk may copy")     \
	X(4, BYTES, "bytes", "the list has more bytes than one sample may hold")      \
	X(5, READS, "reads", "the walk needs more reads than one tick may make")

enum otp_walk_end {
#define X(number, NAME, name, text) OTP_WALK_END_##NAME = number,
	OTP_WALK_ENDS(X)
#undef X
	OTP_WALK_END_NR,
};

/*
 * Payload of a section OTP_SEC_WALK, one for each plan: this head; the root's
 * words; then each frame, innermost first: its address, of which the eight
 * highest bits say which subs are missing (bit 56 + i: a pointer of 0, or
 * unreadable), its words, and the words of its subs. What is missing is 0.
 */
struct otp_walked {
	__u32 generation; /* of struct otp_walks */
	__u16 frames;
	__u16 root_words;  /* 0 where the walk ended before the root was read */
	__u16 frame_words; /* of each frame, its address included */
	__u8 plan;	   /* index */
	__u8 end;	   /* enum otp_walk_end */
	__u16 step;	   /* enum otp_walk_step of the plan */
	__u16 reserved;
};

#define OTP_WALK_MISSING(sub) (1ULL << (56 + (sub)))
#define OTP_WALK_ADDRESS      ((1ULL << 56) - 1)

#define OTP_WALK_ROWS	     (OTP_WALK_SUBS + 1)
#define OTP_WALK_RAW	     256 /* words: rows in the first half, the window in the other */
#define OTP_WALK_AHEAD	     (OTP_WALK_RAW / 2) /* where the window begins */
#define OTP_WALK_FRAME_WORDS (1 + OTP_WALK_ROWS * OTP_WALK_WORDS) /* the most of one frame */
#define OTP_WALK_OUT	     (OTP_WALK_BYTES / 8)
#define OTP_WALK_HEAD	     2 /* words of struct otp_walked */
#define OTP_WALK_ROOT_MORE   3 /* words that may follow the root's: of SLOTS, and of LINK with via; of others fewer */

/* Where the next frames lie, that one read may copy together. */
enum otp_walk_near {
	OTP_WALK_ANYWHERE = 0,
	OTP_WALK_ABOVE = 1,
	OTP_WALK_BELOW = 2,
};

/*
 * A plan with what follows from it, worked out once by whoever hands it to the
 * walker (otp_walk_prepare), not in each tick. Words are read into rows: one for
 * the frame, then one for each sub.
 */
struct otp_walk_ready {
	struct otp_walk plan;
	__u16 words; /* of each frame in the section, its address included */
	__u16 near;  /* enum otp_walk_near */
	__u32 bytes[OTP_WALK_ROWS]; /* to read of each row */
	__u8 pick[OTP_WALK_ROWS * OTP_WALK_WORDS]; /* the words that are kept, as indexes of the rows' words */
	__u32 mark[2]; /* for the eBPF sampler: pid and generation */
};

/* struct otp_walks as samplers keep it. */
struct otp_walks_ready {
	__u32 generation;
	__u32 pid;
	__u64 start_ns;
	__u64 exec_id;
	struct otp_walk_ready plan[OTP_WALK_PLANS];
};

/*
 * The state of a walk between frames, too large for a stack. The plan is a copy:
 * the original may change.
 */
struct otp_walker {
	struct otp_walk_ready ready;
	__u64 at, last, node, root;
	__u64 own; /* the chain's first pointer */
	__u64 sp; /* of the thread; 0: unknown. Set by who walks */
	__u64 tls; /* the same: what its TLS register holds; 0: unknown. Set by otp_walk_begin */
	__u64 seek; /* CALL: where on its stack the next root is sought */
	/* SLOTS. Registers in DWARF numbering, and the pc: set by who walks */
	__u64 pc, regs[OTP_WALK_REGS];
	__u64 c_frame; /* STACK: the saved stack pointer, as in the root */
	__u64 place;
	/*
	 * enum otp_walk_slots_from. CHUNKS: 1 at a chunk's first block; place is the chunk then. STACK: 1 at frame records,
	 * of which place is the next, 2 where they are broken; seek is the end of the bytes before them.
	 */
	__u32 from;
	__u32 nodes;
	__u32 used; /* words in out */
	__u32 taken; /* words of the sample's sections before this one; 0 at a sample's first plan */
	__u32 reads; /* of the sample */
	__u32 frames;
	__u32 end; /* enum otp_walk_end */
	__u32 root_words;
	__u32 base; /* of the frame's row in raw: 0, or within the window */
	__u32 window; /* bytes that raw holds from window_at on */
	__u64 window_at;
	__u64 held[OTP_WALK_SUBS]; /* where the subs' rows were read; 0: nowhere */
	__u64 raw[OTP_WALK_RAW]; /* the rows */
	__u64 out[OTP_WALK_OUT];
};

OTP_CHECK(struct otp_walk_sub, 8);
OTP_CHECK(struct otp_walk_edge, 12);
OTP_CHECK(struct otp_walk_slots, 32);
OTP_CHECK(struct otp_walk_chunks, 32);
OTP_CHECK(struct otp_walk_also, 32);
OTP_CHECK(struct otp_walk_held, 32);
OTP_CHECK(struct otp_walk_hashed, 32);
OTP_CHECK(struct otp_walk, 160);
OTP_CHECK_AT(struct otp_walk, base, 8);
OTP_CHECK_AT(struct otp_walk, first, 60);
OTP_CHECK_AT(struct otp_walk, sub, 84);
OTP_CHECK_AT(struct otp_walk, kinds, 116);
OTP_CHECK_AT(struct otp_walk, low, 120);
OTP_CHECK_AT(struct otp_walk, slots, 128);
OTP_CHECK(struct otp_walks, 344);
OTP_CHECK(struct otp_walked, 16);
OTP_CHECK(struct otp_walk_ready, 272);
OTP_CHECK(struct otp_walks_ready, 568);

/* --- plans of others --- */

static __always_inline int otp_walk_sub_sound(const struct otp_walk_sub *s, __u32 i)
{
	return s->from <= i && s->at < OTP_WALK_WORDS && s->high < 32;
}

/* Whether the chain leads to a table, in which the list is sought. */
static __always_inline int otp_walk_has_table(const struct otp_walk *p)
{
	return p->step == OTP_WALK_LINK && p->start != OTP_WALK_CALL && p->hashed.slots;
}

static __always_inline int otp_walk_hashed_sound(const struct otp_walk_hashed *h)
{
	return !(h->reserved[0] | h->reserved[1] | h->reserved[2] | h->reserved[3] | h->reserved[4]);
}

/* Only a walk of slots has any of it. */
static __always_inline int otp_walk_slots_sound(const struct otp_walk *p)
{
	const struct otp_walk_slots *s = &p->slots;

	if (p->step == OTP_WALK_SLOTS)
		return s->at_reg < OTP_WALK_REGS && s->place_reg < OTP_WALK_REGS;
	if (p->step == OTP_WALK_CHUNKS)
		return 1;
	if (p->step == OTP_WALK_ARRAY && p->start != OTP_WALK_CALL)
		return !(p->also.reserved[0] | p->also.reserved[1]);
	if (p->step == OTP_WALK_STACK)
		return p->held.at_reg < OTP_WALK_REGS && p->held.home <= !!p->via && !(p->held.reserved[0] | p->held.reserved[1]);
	if (otp_walk_has_table(p))
		return otp_walk_hashed_sound(&p->hashed);
	return !(s->code | s->code_len | s->store | s->at_reg | s->place_reg) &&
	       !(s->compiled | s->limit | s->c_frame | s->place | s->prev | s->back | s->resumer);
}

static __always_inline int otp_walk_in_block(__s16 at)
{
	return at >= 0 && at <= OTP_WALK_BLOCK - 4 && at % 4 == 0;
}

/* Blocks without subs, whole. */
static __always_inline int otp_walk_chunks_sound(const struct otp_walk *p)
{
	const struct otp_walk_chunks *c = &p->chunks;

	if (p->step != OTP_WALK_CHUNKS)
		return 1;
	if (p->start == OTP_WALK_CALL || p->stride != OTP_WALK_BLOCK || p->keep != (1U << OTP_WALK_WORDS) - 1 ||
	    p->copy_off || p->nr_subs || p->tag)
		return 0;
	return !c->reserved && c->shift < 32 && c->wide <= 1 && c->chunk % 4 == 0 && c->outer % 4 == 0 &&
	       otp_walk_in_block(c->sp) && otp_walk_in_block(c->end);
}

/* What a stack, a list and calls share. */
static __always_inline int otp_walk_union_sound(const struct otp_walk *p)
{
	if (p->start == OTP_WALK_CALL)
		return (p->step == OTP_WALK_LINK || p->step == OTP_WALK_ARRAY) && p->nr_chain <= 1 && !p->root_at && !p->outer;
	if (p->step == OTP_WALK_STACK)
		return p->stride == OTP_WALK_BLOCK && !p->tag && p->far >= 0 && p->far < p->frames_max * OTP_WALK_BLOCK &&
		       !(p->far % OTP_WALK_BLOCK);
	return !p->low && (p->step == OTP_WALK_LINK ? p->via || !p->via_at : !(p->via | p->via_at));
}

/* Whether every field is within its bounds. What a plan leads to is the walker's concern: it trusts no address. */
static __always_inline int otp_walk_plan_sound(const struct otp_walk *p)
{
	__u32 i;

	if (p->start > OTP_WALK_CALL || p->step > OTP_WALK_CHUNKS || p->nr_chain > OTP_WALK_CHAIN ||
	    p->nr_subs > OTP_WALK_SUBS || p->root_at > p->nr_chain || p->link >= OTP_WALK_WORDS || p->below > (p->step == OTP_WALK_LINK))
		return 0;
	if (p->kinds >> 16 || p->kind_word >= OTP_WALK_WORDS || p->kind_shift >= 64)
		return 0;
	if (!otp_walk_union_sound(p))
		return 0;
	if (p->start != OTP_WALK_NONE && (!p->frames_max || p->frames_max > OTP_WALK_FRAMES))
		return 0;
	if (p->start != OTP_WALK_NONE && p->step != OTP_WALK_LINK && p->step != OTP_WALK_SLOTS && !p->stride)
		return 0;
	if (!otp_walk_slots_sound(p) || !otp_walk_chunks_sound(p))
		return 0;
	for (i = 0; i < p->nr_subs; i++)
		if (!otp_walk_sub_sound(&p->sub[i], i))
			return 0;
	return 1;
}

/* For whoever gets walks from someone that is not trusted. At least one of the plans is one. */
static __always_inline int otp_walk_sound(const struct otp_walks *w)
{
	__u32 plans = 0, i;

	if (!w->generation || w->reserved)
		return 0;
	for (i = 0; i < OTP_WALK_PLANS; i++) {
		if (!otp_walk_plan_sound(&w->plan[i]))
			return 0;
		plans += w->plan[i].start != OTP_WALK_NONE;
	}
	return plans > 0;
}

/* --- what follows from a plan --- */

static __always_inline __u32 otp_walk_count(__u16 keep)
{
	__u32 n = 0, word;

	for (word = 0; word < OTP_WALK_WORDS; word++)
		n += (keep >> word) & 1;
	return n;
}

/* Words of one frame in the section. */
static __always_inline __u32 otp_walk_frame_words(const struct otp_walk *p)
{
	__u32 n = 1 + otp_walk_count(p->keep), i;

	for (i = 0; i < OTP_WALK_SUBS; i++)
		if (i < p->nr_subs)
			n += otp_walk_count(p->sub[i].keep);
	return n;
}

/* The words of a row that hold pointers. */
static __always_inline __u32 otp_walk_pointers(const struct otp_walk *p, __u32 row)
{
	__u32 mask = 0, i;

	if (!row && (p->step == OTP_WALK_LINK || p->step == OTP_WALK_SLOTS))
		mask |= 1U << (p->link & (OTP_WALK_WORDS - 1));
	if (!row && p->kinds)
		mask |= 1U << (p->kind_word & (OTP_WALK_WORDS - 1));
	for (i = 0; i < OTP_WALK_SUBS; i++)
		if (i < p->nr_subs && p->sub[i].from == row)
			mask |= 1U << (p->sub[i].at & (OTP_WALK_WORDS - 1));
	return mask;
}

/* The bytes up to the last word of the mask. */
static __always_inline __u32 otp_walk_span(__u32 mask)
{
	__u32 bytes = 0, word;

	for (word = 0; word < OTP_WALK_WORDS; word++)
		if ((mask >> word) & 1)
			bytes = (word + 1) * 8;
	return bytes;
}

/* Notes which words of a row are kept. */
static inline void otp_walk_choose(struct otp_walk_ready *r, __u32 row, __u16 keep)
{
	__u32 word;

	for (word = 0; word < OTP_WALK_WORDS; word++)
		if ((keep >> word) & 1)
			r->pick[r->words++] = (__u8)(row * OTP_WALK_WORDS + word);
}

/* Of an array, and of a stack's blocks, the next one is a stride away: a window that ends before it would serve one alone. */
static inline __u16 otp_walk_near(const struct otp_walk *p)
{
	if (p->step == OTP_WALK_LINK)
		return p->below ? OTP_WALK_BELOW : OTP_WALK_ANYWHERE;
	if (p->step == OTP_WALK_SLOTS)
		return OTP_WALK_BELOW;
	if (p->frames_max == 1 || p->stride >= OTP_WALK_WINDOW || p->stride <= -OTP_WALK_WINDOW)
		return OTP_WALK_ANYWHERE;
	return p->stride < 0 ? OTP_WALK_BELOW : OTP_WALK_ABOVE;
}

static inline void otp_walk_prepare(struct otp_walk_ready *r, const struct otp_walk *p)
{
	__u32 i;

	__builtin_memset(r, 0, sizeof(*r));
	r->plan = *p;
	r->near = otp_walk_near(p);
	r->bytes[0] = otp_walk_span(p->keep | otp_walk_pointers(p, 0));
	otp_walk_choose(r, 0, p->keep);
	for (i = 0; i < OTP_WALK_SUBS && i < p->nr_subs; i++) {
		r->bytes[i + 1] = otp_walk_span(p->sub[i].keep | otp_walk_pointers(p, i + 1));
		otp_walk_choose(r, i + 1, p->sub[i].keep);
	}
	r->words++; /* the address */
}

/* Of walks that are sound. */
static inline void otp_walks_prepare(struct otp_walks_ready *r, const struct otp_walks *w, __u32 pid)
{
	__u32 i;

	r->generation = w->generation;
	r->pid = pid;
	r->start_ns = w->start_ns;
	r->exec_id = w->exec_id;
	for (i = 0; i < OTP_WALK_PLANS; i++) {
		otp_walk_prepare(&r->plan[i], &w->plan[i]);
		r->plan[i].mark[0] = pid;
		r->plan[i].mark[1] = w->generation;
	}
}

#ifdef OTP_WALK_READ

/* The rest of out that a plan leaves to the next: a section's head, a root, the words of SLOTS. The last word is unused. */
#define OTP_WALK_SPARE (1 + OTP_WALK_HEAD + OTP_WALK_WORDS + OTP_WALK_ROOT_MORE + 1)

/* --- reading --- */

/* Reads a row. A row of which nothing is kept or followed needs no memory. */
static __always_inline int otp_walk_read(struct otp_walker *w, __u32 row, __u64 bytes, __u64 from)
{
	OTP_WALK_OPAQUE(bytes);
	if (!bytes || bytes > OTP_WALK_WORDS * 8)
		return 0;
	w->reads++;
	if (!OTP_WALK_READ(&w->raw[row * OTP_WALK_WORDS], bytes, from))
		return 0;
	w->reads += OTP_WALK_FAULT;
	return -1;
}

static __always_inline __u64 otp_walk_page(__u64 at)
{
	return at & ~(__u64)(OTP_WALK_PAGE - 1);
}

/* Reads the frame at from, and those that lie behind it in the walk's direction, in the same pages. */
static __always_inline int otp_walk_read_ahead(struct otp_walker *w, __u64 from, __u64 bytes)
{
	__u64 low = from, end = from + bytes, len;

	if (w->ready.near == OTP_WALK_BELOW) {
		low = end - OTP_WALK_WINDOW;
		if (low > from || low < otp_walk_page(from))
			low = otp_walk_page(from);
	} else {
		len = otp_walk_page(end - 1) + OTP_WALK_PAGE - low;
		end = low + (len < OTP_WALK_WINDOW ? len : OTP_WALK_WINDOW);
	}
	w->window = 0;
	w->base = OTP_WALK_AHEAD + (__u32)(from - low) / 8;
	len = end - low;
	/* The bound is one of time. */
	w->reads += 1 + (__u32)(len / 512);
	OTP_WALK_OPAQUE(len);
	if (len > OTP_WALK_WINDOW || OTP_WALK_READ(&w->raw[OTP_WALK_AHEAD], len, low)) {
		w->reads += OTP_WALK_FAULT;
		return -1;
	}
	w->window = (__u32)len;
	w->window_at = low;
	return 0;
}

/* The frame's own row, which an earlier read may hold. */
static __always_inline int otp_walk_row(struct otp_walker *w)
{
	__u64 from = w->at + w->ready.plan.copy_off, bytes = w->ready.bytes[0], into = from - w->window_at;

	if (!w->ready.near || from % 8 || !bytes) {
		w->base = 0;
		return otp_walk_read(w, 0, bytes, from);
	}
	if (into >= w->window || into + bytes > w->window)
		return otp_walk_read_ahead(w, from, bytes);
	w->base = OTP_WALK_AHEAD + (__u32)into / 8;
	return 0;
}

/* A word of the frame's row. */
static __always_inline __u64 otp_walk_word(const struct otp_walker *w, __u64 word)
{
	__u64 at = w->base + word;

	OTP_WALK_OPAQUE(at);
	return w->raw[at & (OTP_WALK_RAW - 1)];
}

static __always_inline int otp_walk_pointer(struct otp_walker *w, __u64 *to, __u64 from)
{
	w->reads++;
	if (!OTP_WALK_READ(to, 8, from))
		return 0;
	w->reads += OTP_WALK_FAULT;
	return -1;
}

/* Appends a word. Room was made sure of before: the mask is for the verifier. */
static __always_inline void otp_walk_put(struct otp_walker *w, __u64 word)
{
	__u64 at = w->used;

	OTP_WALK_OPAQUE(at);
	w->out[at & (OTP_WALK_OUT - 1)] = word;
	w->used++;
}

/* All bits, or none: whether the frame is of a kind that has subs. No branch, for the verifier. */
static __always_inline __u64 otp_walk_has_subs(const struct otp_walker *w)
{
	__u32 kinds = w->ready.plan.kinds;
	__u64 kind = otp_walk_word(w, w->ready.plan.kind_word) >> (w->ready.plan.kind_shift & 63);

	return -(__u64)((kinds == 0) | ((kinds >> (kind & 15)) & 1));
}

/*
 * A sub that is missing is zeros. Returns its bit then, else 0. What is read of an object that the frame before meant too
 * is there already: a function that calls itself.
 */
static __always_inline __u64 otp_walk_sub(struct otp_walker *w, __u32 i)
{
	const struct otp_walk_sub *s = &w->ready.plan.sub[i];
	__u64 at = s->from * OTP_WALK_WORDS + s->at + w->base * (((__u64)s->from - 1) >> 63), pointer;
	__u32 word;

	OTP_WALK_OPAQUE(at);
	pointer = w->raw[at & (OTP_WALK_RAW - 1)] & ~(__u64)s->tag & otp_walk_has_subs(w);
	pointer = pointer << (s->high & 31) >> (s->high & 31);
	if (pointer && pointer == w->held[i])
		return 0;
	w->held[i] = pointer;
	if (pointer && !otp_walk_read(w, i + 1, w->ready.bytes[i + 1], pointer + s->off))
		return 0;
	w->held[i] = 0;
	for (word = 0; word < OTP_WALK_WORDS; word++)
		w->raw[(i + 1) * OTP_WALK_WORDS + word] = 0;
	return OTP_WALK_MISSING(i);
}

/* --- the list --- */

static __always_inline int otp_walk_edge(struct otp_walker *w, __u64 *to, const struct otp_walk_edge *e)
{
	__u64 base = 0, count = 0;

	if (otp_walk_pointer(w, &base, w->node + e->at))
		return -1;
	if (e->scale) {
		if (otp_walk_pointer(w, &count, w->node + e->count_at))
			return -1;
		base += (__u64)((__s64)(__s32)count * e->scale);
	}
	*to = base + e->bias;
	return 0;
}

/* The walk is over. */
static __always_inline int otp_walk_over(struct otp_walker *w, __u32 end)
{
	w->end = end;
	return 1;
}

/* Whether an address is in a stack; its upper end is in w->last. */
static __always_inline int otp_walk_within(const struct otp_walker *w, __u64 low, __u64 at)
{
	return at - low < w->last - low;
}

static __always_inline int otp_walk_in_code(__u64 code, __u32 len, __u64 pc)
{
	return pc - code < len;
}

static __always_inline __u64 otp_walk_register(const struct otp_walker *w, __u64 reg)
{
	OTP_WALK_OPAQUE(reg);
	return w->regs[reg & (OTP_WALK_REGS - 1)];
}

/* The stack pointer that an interpreter has in a register; 0: its code does not run. */
static __always_inline __u64 otp_walk_held(const struct otp_walker *w, __u64 low)
{
	const struct otp_walk_held *h = &w->ready.plan.held;
	__u64 at = otp_walk_register(w, h->at_reg);

	return h->at_reg && otp_walk_in_code(h->code, h->code_len, w->pc) && otp_walk_within(w, low, at) ? at & ~7ULL : 0;
}

/* The lowest stack pointer with which all bytes up to the stack's end may be copied. */
static __always_inline __u64 otp_walk_outermost(const struct otp_walker *w, __u64 low)
{
	const __u64 all = w->last - low, most = OTP_WALK_BLOCK * (__u64)w->ready.plan.frames_max;

	return w->last - (all < most ? all : most) + 8;
}

/* first's saved stack pointer, or an interpreter's; 0: none that is in the stack. */
static __always_inline __u64 otp_walk_saved_first(struct otp_walker *w, __u64 low)
{
	const struct otp_walk *p = &w->ready.plan;
	__u64 at = otp_walk_held(w, low);

	if (at)
		return at;
	if (otp_walk_edge(w, &at, &p->first))
		return 0;
	if (p->held.at_reg && at < low)
		at = low;
	if (!otp_walk_within(w, low, at))
		return 0;
	return at & ~(__u64)OTP_WALK_VIA;
}

/*
 * The saved stack pointer; 0: none that is in the stack. What cannot be read counts as 0. *from: where the copy begins, if
 * it is not there.
 */
static __always_inline __u64 otp_walk_saved(struct otp_walker *w, __u64 low, __u64 *from)
{
	const struct otp_walk *p = &w->ready.plan;
	__u64 at = 0, via = 0;

	if (p->via && !otp_walk_pointer(w, &via, w->node + p->via)) {
		if (!otp_walk_pointer(w, &at, via + p->via_at) && otp_walk_within(w, low, at))
			return at | OTP_WALK_VIA;
		if (p->held.home && !otp_walk_pointer(w, &at, via) && at != w->own)
			*from = otp_walk_outermost(w, low);
	}
	at = otp_walk_saved_first(w, low);
	return at || !*from ? at : *from | OTP_WALK_VIA;
}

/* A word from elsewhere. */
static __always_inline void otp_walk_put_also(struct otp_walker *w, __u64 at)
{
	__u64 word = 0;

	if (otp_walk_pointer(w, &word, at))
		word = OTP_WALK_UNREAD;
	otp_walk_put(w, word);
}

/* Whether a frame record is in the stack; w->last is the address of its last byte. */
static __always_inline int otp_walk_is_record(const struct otp_walker *w, __u64 at)
{
	return at && !(at & 7) && at < w->last && w->last - at >= 15;
}

/* From the frame records to the outermost bytes, as many as may still be copied. */
static __always_inline void otp_walk_leave_records(struct otp_walker *w)
{
	const __u64 left = OTP_WALK_BLOCK * (__u64)(w->ready.plan.frames_max - w->frames), all = w->last + 1 - w->seek;

	w->from = 0;
	w->at = w->last + 1 - (left < all ? left : all);
}

/* From a stack's innermost bytes to its frame records, or, if it has none, to its outermost bytes. */
static __always_inline void otp_walk_enter_records(struct otp_walker *w)
{
	const __s16 frame = w->ready.plan.held.frame;

	w->seek = w->at;
	w->place = w->c_frame & OTP_WALK_VIA ? w->c_frame - OTP_WALK_VIA - 16 : 0;
	if (frame && !w->place && otp_walk_pointer(w, &w->place, w->node + frame))
		w->place = 0;
	if (frame && otp_walk_is_record(w, w->place)) {
		w->from = 1;
		w->at = w->place;
	} else {
		otp_walk_leave_records(w);
	}
}

/* To the next block of a stack, whose last ones may be of another kind. */
static __always_inline void otp_walk_next_block(struct otp_walker *w)
{
	const __u64 far = (__u32)w->ready.plan.far, left = w->ready.plan.frames_max - w->frames;

	if (w->from == 2)
		otp_walk_leave_records(w);
	else if (w->from)
		w->at = w->place ? w->place : w->last + 1;
	else
		w->at += OTP_WALK_BLOCK;
	if (far && !w->from && left * OTP_WALK_BLOCK == far && w->at < w->last && w->last + 1 - w->at > far)
		otp_walk_enter_records(w);
}

/*
 * Reads records into the frame's row, from w->place on. Each lies above the one before, or is none: 0 is where they end,
 * anything else where they are broken. 0; or 1: all of them are in the bytes that were copied.
 */
static __always_inline int otp_walk_read_records(struct otp_walker *w)
{
	__u64 at = w->place, end = 0, next, to;
	__u32 i;

	w->base = 0;
	for (i = 0; i < OTP_WALK_WORDS; i++)
		w->raw[i] = 0;
	for (i = 0; i < OTP_WALK_WORDS && at; i += 2) {
		to = i;
		OTP_WALK_OPAQUE(to);
		to &= OTP_WALK_WORDS - 2;
		w->reads++;
		if (OTP_WALK_READ(&w->raw[to], 16, at)) {
			w->reads += OTP_WALK_FAULT;
			w->from = 2;
			at = 0;
			break;
		}
		end = at + 16;
		next = w->raw[to];
		if (next <= at || !otp_walk_is_record(w, next)) {
			w->from = next ? 2 : 1;
			w->raw[to] = next = 0;
		}
		at = next;
	}
	w->place = at;
	if (end > w->seek)
		return 0;
	if (at)
		w->at = at;
	else
		otp_walk_leave_records(w);
	return 1;
}

/*
 * A block cannot be read: where a stack's copy begins too low, to the first block that begins in the next page; of that page,
 * less than a block is lost. 0, or 1: the walk is over.
 */
static __always_inline int otp_walk_pass_by(struct otp_walker *w)
{
	const __u64 page = otp_walk_page(w->at) + OTP_WALK_PAGE;

	if (w->ready.plan.step != OTP_WALK_STACK || !(w->ready.plan.held.at_reg | w->ready.plan.held.home) || w->frames)
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	w->at = page + ((w->last + 1 - page) & (OTP_WALK_BLOCK - 1));
	return 0;
}

/* To the first block of a stack; 0, or 1: the walk is over. */
static __always_inline int otp_walk_enter_stack(struct otp_walker *w)
{
	__u64 low = 0, from = 0, saved;

	if (otp_walk_pointer(w, &low, w->node + w->ready.plan.low) || otp_walk_edge(w, &w->last, &w->ready.plan.last))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	if (otp_walk_within(w, low, w->sp))
		return otp_walk_over(w, OTP_WALK_END_DONE);
	saved = w->c_frame = otp_walk_saved(w, low, &from);
	w->from = 0;
	if (!saved)
		return otp_walk_over(w, OTP_WALK_END_DONE);
	otp_walk_put(w, saved);
	w->root_words++;
	from = from ? from : saved;
	w->at = w->last - ((w->last - (from - 8) + OTP_WALK_BLOCK - 1) & ~(__u64)(OTP_WALK_BLOCK - 1));
	w->last--;
	return 0;
}

/* --- slots --- */

/*
 * The innermost frame of the thread, and the place in it. Where C code has just returned, the register is not that of
 * the frame yet, and most likely of no slot.
 */
static __always_inline int otp_walk_innermost(struct otp_walker *w)
{
	const struct otp_walk_slots *s = &w->ready.plan.slots;
	__u64 compiled = 0, at, limit = 0;

	w->from = OTP_WALK_FROM_NODE;
	w->place = 0;
	if (otp_walk_pointer(w, &compiled, w->root + s->compiled) || otp_walk_pointer(w, &limit, w->node + s->limit))
		return -1;
	at = otp_walk_register(w, s->at_reg);
	if (compiled) {
		w->at = compiled;
		w->from = OTP_WALK_FROM_COMPILED;
	} else if (otp_walk_in_code(s->code, s->code_len, w->pc) && otp_walk_register(w, s->place_reg) &&
		   at - w->last <= limit - w->last && !(at & OTP_WALK_FROM_MASK)) {
		w->at = at;
		w->from = OTP_WALK_FROM_REGISTER;
		w->place = otp_walk_register(w, s->place_reg);
	} else if (otp_walk_pointer(w, &w->place, w->c_frame + s->place)) {
		return -1;
	}
	otp_walk_put(w, (w->at & ~OTP_WALK_FROM_MASK) | w->from);
	otp_walk_put(w, w->place);
	otp_walk_put(w, w->c_frame);
	w->root_words += 3;
	return 0;
}

/*
 * Whether an address may be a frame of the thread. C libraries have the stack of a thread that the program began below
 * what its TLS register points to: what lies above is another one's.
 */
static __always_inline int otp_walk_on_own_stack(const struct otp_walker *w, __u64 at)
{
	return at >= w->sp && (w->sp >= w->tls || at < w->tls);
}

/* To the first frame of a node. One whose C frame is not on the thread's stack is not the thread's, or does not run. */
static __always_inline int otp_walk_enter_slots(struct otp_walker *w)
{
	const struct otp_walk *p = &w->ready.plan;

	if (otp_walk_edge(w, &w->at, &p->first) || otp_walk_edge(w, &w->last, &p->last) ||
	    otp_walk_pointer(w, &w->c_frame, w->node + p->slots.c_frame))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	w->c_frame &= ~OTP_WALK_SLOT_TYPES;
	if (!w->c_frame || !otp_walk_on_own_stack(w, w->c_frame))
		return otp_walk_over(w, OTP_WALK_END_DONE);
	if (!w->nodes++ && otp_walk_innermost(w))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	return 0;
}

/* From the last frame of a coroutine to the node of its resumer; 0, or 1: the walk is over. */
static __always_inline int otp_walk_leave_slots(struct otp_walker *w)
{
	const struct otp_walk_slots *s = &w->ready.plan.slots;
	__u64 at = w->c_frame, back = 0;
	__u32 i;

	if (w->at != w->last)
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	for (i = 0; i < OTP_WALK_SLOT_C_FRAMES && at; i++) {
		w->c_frame = at;
		if (otp_walk_pointer(w, &at, w->c_frame + s->prev))
			return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
		at &= ~OTP_WALK_SLOT_TYPES;
	}
	if (at || otp_walk_pointer(w, &back, w->c_frame + s->back))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	if (!otp_walk_in_code(s->code, s->code_len, back))
		return otp_walk_over(w, OTP_WALK_END_DONE);
	if (otp_walk_pointer(w, &w->node, w->c_frame + s->resumer) || !w->node)
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	return otp_walk_enter_slots(w);
}

/* Whether a word may be a link: a number, or an object with its type, has higher bits. */
static __always_inline int otp_walk_is_link(__u64 link)
{
	return link & OTP_WALK_SLOT_TYPE ? !(link >> 32) : link && !(link >> 47);
}

/* A frame that the interpreter is entering, or leaves with results in place of its head, has its link in a register. */
static __always_inline void otp_walk_mend(struct otp_walker *w)
{
	__u64 link = w->base + w->ready.plan.link, code = 0;

	OTP_WALK_OPAQUE(link);
	if (w->ready.plan.step != OTP_WALK_SLOTS || w->frames || w->nodes != 1 ||
	    w->from != OTP_WALK_FROM_REGISTER)
		return;
	if ((!otp_walk_pointer(w, &code, w->pc) && (__u32)code == w->ready.plan.slots.store) ||
	    !otp_walk_is_link(w->raw[link & (OTP_WALK_RAW - 1)]))
		w->raw[link & (OTP_WALK_RAW - 1)] = w->place;
}

/* 0, or 1: the walk is over. */
static __always_inline int otp_walk_next_slots(struct otp_walker *w, __u64 link)
{
	__u64 code = 0, distance = link & ~OTP_WALK_SLOT_TYPES;

	if (!(link & OTP_WALK_SLOT_TYPE)) {
		if (otp_walk_pointer(w, &code, link - 4))
			return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
		distance = OTP_WALK_SLOT_HEAD + 8 * (code >> 8 & 0xff);
	}
	if (!distance || distance > w->at - w->last)
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	w->at -= distance;
	return 0;
}

/* --- chunks --- */

/* A pointer to a chunk; 0: there is none. */
static __always_inline int otp_walk_chunk_pointer(struct otp_walker *w, __u64 at, __u64 *to)
{
	const struct otp_walk_chunks *c = &w->ready.plan.chunks;
	__u64 word = 0;

	if (otp_walk_pointer(w, &word, c->wide ? at : at & ~7ULL))
		return -1;
	if (!c->wide) {
		word = (__u32)(word >> (8 * (at & 4)));
		word = word ? c->base + (word << (c->shift & 31)) : 0;
	}
	*to = word;
	return 0;
}

/* To a chunk's first block. 0, or 1: the walk is over. */
static __always_inline int otp_walk_enter_chunk(struct otp_walker *w, __u64 pointer)
{
	__u64 chunk = 0;

	if (otp_walk_chunk_pointer(w, pointer, &chunk))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	if (!chunk)
		return otp_walk_over(w, OTP_WALK_END_DONE);
	if (w->nodes++ >= OTP_WALK_CHUNKS_MAX)
		return otp_walk_over(w, OTP_WALK_END_FRAMES);
	w->place = w->at = w->last = chunk;
	w->from = 1;
	return 0;
}

static __always_inline int otp_walk_enter_chunks(struct otp_walker *w)
{
	__u64 owner = 0;

	if (otp_walk_pointer(w, &owner, w->node + w->ready.plan.chunks.owner))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	if (!owner)
		return otp_walk_over(w, OTP_WALK_END_NO_ROOT);
	otp_walk_put(w, w->node);
	otp_walk_put(w, owner);
	otp_walk_put_also(w, w->ready.plan.chunks.also);
	w->root_words += 3;
	return otp_walk_enter_chunk(w, owner + w->ready.plan.chunks.chunk);
}

/* A number of the chunk whose first block was copied last. */
static __always_inline __u64 otp_walk_chunk_number(const struct otp_walker *w, __s16 at)
{
	return (__u32)(otp_walk_word(w, (__u64)at / 8) >> (8 * (at & 4)));
}

/* From a chunk's first block to its frames, from those to the next chunk. Where there are none, it is passed at once. */
static __always_inline int otp_walk_leave_chunk(struct otp_walker *w)
{
	const struct otp_walk_chunks *c = &w->ready.plan.chunks;
	__u64 sp, end, low;

	if (!w->from)
		return otp_walk_enter_chunk(w, w->place + c->outer);
	w->from = 0;
	sp = otp_walk_chunk_number(w, c->sp);
	end = otp_walk_chunk_number(w, c->end);
	if (sp >= end || end > OTP_WALK_CHUNK_WORDS)
		return 0;
	low = w->place + c->stack + 8 * sp - 16;
	w->last = w->place + c->stack + 8 * end;
	w->at = w->last - ((w->last - low + OTP_WALK_BLOCK - 1) & ~(__u64)(OTP_WALK_BLOCK - 1));
	w->last--;
	return 0;
}

/* --- any list --- */

/* To the first frame of a list, or of an array; 0, or 1: the walk is over. */
static __always_inline int otp_walk_enter_list(struct otp_walker *w)
{
	const struct otp_walk *p = &w->ready.plan;

	w->at = w->node;
	if (p->step != OTP_WALK_ARRAY)
		return 0;
	if (otp_walk_edge(w, &w->at, &p->first) || otp_walk_edge(w, &w->last, &p->last))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	return 0;
}

/* To the first frame below the node; 0, or 1: the walk is over. */
static __always_inline int otp_walk_enter(struct otp_walker *w)
{
	if (!w->node)
		return otp_walk_over(w, OTP_WALK_END_DONE);
	if (w->ready.plan.step == OTP_WALK_STACK)
		return otp_walk_enter_stack(w);
	if (w->ready.plan.step == OTP_WALK_SLOTS)
		return otp_walk_enter_slots(w);
	if (w->ready.plan.step == OTP_WALK_CHUNKS)
		return otp_walk_enter_chunks(w);
	return otp_walk_enter_list(w);
}

/* LINK: what the root has a pointer to. ARRAY, STACK: the words from elsewhere. */
static __always_inline void otp_walk_root_more(struct otp_walker *w, __u64 root)
{
	const struct otp_walk *p = &w->ready.plan;
	__u64 at = 0, has = 0;
	__u32 word;

	if (p->step == OTP_WALK_ARRAY && p->start != OTP_WALK_CALL)
		for (word = 0; word < OTP_WALK_ALSO; word++)
			if (p->also.at[word])
				otp_walk_put_also(w, p->also.at[word]);
	if (p->step == OTP_WALK_STACK && p->held.also)
		otp_walk_put_also(w, p->held.also);
	if (p->step != OTP_WALK_LINK || p->start == OTP_WALK_CALL || !p->via)
		return;
	if (!otp_walk_pointer(w, &at, root + p->via) && at && !otp_walk_read(w, 0, 8 * OTP_WALK_ROOT_MORE, at + p->via_at))
		has = -1ULL;
	for (word = 0; word < OTP_WALK_ROOT_MORE; word++)
		otp_walk_put(w, w->raw[word] & has);
}

/* The root's words. 0, or 1: the walk is over. */
static __always_inline int otp_walk_root(struct otp_walker *w, __u64 root)
{
	__u16 keep = w->ready.plan.root_keep;
	__u32 word;

	if (otp_walk_read(w, 0, otp_walk_span(keep), root + w->ready.plan.root_off))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	for (word = 0; word < OTP_WALK_WORDS; word++)
		if ((keep >> word) & 1)
			otp_walk_put(w, w->raw[word]);
	otp_walk_root_more(w, root);
	w->root_words = w->used - OTP_WALK_HEAD;
	return 0;
}

/* --- calls --- */

/* Before the first root: there is no frame at w->at. */
static __always_inline int otp_walk_enter_calls(struct otp_walker *w)
{
	w->seek = (w->sp + 7) & ~7ULL;
	w->at = w->ready.plan.stride > 0;
	w->last = !w->at;
	return w->sp ? 0 : otp_walk_over(w, OTP_WALK_END_NO_ROOT);
}

/* The stack is over, or as much of it as may be read. */
static __always_inline int otp_walk_sought(struct otp_walker *w, __u32 end)
{
	return otp_walk_over(w, w->nodes ? end : OTP_WALK_END_NO_ROOT);
}

/* Reads the stack from w->seek on, up to a multiple of OTP_WALK_WINDOW, into the rows' window. Returns the words. */
static __always_inline __u64 otp_walk_read_calls(struct otp_walker *w)
{
	__u64 bytes = OTP_WALK_WINDOW - (w->seek & (OTP_WALK_WINDOW - 1)), read = bytes;

	w->window = 0;
	w->reads += 1 + (__u32)(bytes / 512);
	OTP_WALK_OPAQUE(read);
	if (read > OTP_WALK_WINDOW || OTP_WALK_READ(&w->raw[OTP_WALK_AHEAD], read, w->seek)) {
		w->reads += OTP_WALK_FAULT;
		return 0;
	}
	return bytes / 8;
}

/* The index in the window of the first word that is the return address. */
static __always_inline __u64 otp_walk_find_call(const struct otp_walker *w)
{
	__u64 i;

	for (i = 0; i < OTP_WALK_WINDOW / 8; i++)
		if (w->raw[OTP_WALK_AHEAD + i] == w->ready.plan.base)
			break;
	return i;
}

/* The root that the call at this place is of; 0: none, or it is over. */
static __always_inline __u64 otp_walk_call_root(struct otp_walker *w, __u64 call)
{
	const struct otp_walk *p = &w->ready.plan;
	__u64 root = 0, proof = 0;

	if (otp_walk_pointer(w, &root, call + p->call_root) || !root || otp_walk_pointer(w, &proof, root + p->call_proof) ||
	    proof != call + p->call_at)
		return 0;
	return root;
}

/* To the next root on the thread's stack, as far as one window holds it. 0, or 1: the walk is over. */
static __always_inline int otp_walk_seek(struct otp_walker *w)
{
	__u64 words, at = w->seek, i, root;

	if (at - w->sp >= OTP_WALK_SEEK)
		return otp_walk_sought(w, OTP_WALK_END_READS);
	words = otp_walk_read_calls(w);
	if (!words)
		return otp_walk_sought(w, OTP_WALK_END_DONE);
	i = otp_walk_find_call(w);
	w->seek = at + 8 * (i < words ? i + 1 : words);
	root = i < words ? otp_walk_call_root(w, at + 8 * i) : 0;
	if (!root)
		return 0;
	if (!w->nodes++ && otp_walk_root(w, root))
		return 1;
	w->node = root;
	if (w->ready.plan.nr_chain && otp_walk_pointer(w, &w->node, root + w->ready.plan.chain[0]))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	w->node &= ~(__u64)w->ready.plan.tag;
	return otp_walk_enter_list(w);
}

/* To the next node, if the array is over. */
static __always_inline int otp_walk_leave(struct otp_walker *w)
{
	if (w->ready.plan.start == OTP_WALK_CALL)
		return otp_walk_seek(w);
	if (w->ready.plan.step == OTP_WALK_SLOTS)
		return otp_walk_leave_slots(w);
	if (w->ready.plan.step == OTP_WALK_CHUNKS)
		return otp_walk_leave_chunk(w);
	if (w->ready.plan.step != OTP_WALK_ARRAY || !w->ready.plan.outer)
		return otp_walk_over(w, OTP_WALK_END_DONE);
	if (otp_walk_pointer(w, &w->node, w->node + w->ready.plan.outer))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	return otp_walk_enter(w);
}

/* Whether there is no frame at w->at: an empty array, or past its last one. */
static __always_inline int otp_walk_passed(const struct otp_walker *w)
{
	if (w->ready.plan.step == OTP_WALK_LINK)
		return !w->at;
	if (w->ready.plan.step == OTP_WALK_SLOTS)
		return w->at <= w->last;
	return w->ready.plan.stride < 0 ? w->at < w->last : w->at > w->last;
}

/* 0, or 1: the walk is over. */
static __always_inline int otp_walk_next(struct otp_walker *w)
{
	if (w->ready.plan.step == OTP_WALK_SLOTS)
		return otp_walk_next_slots(w, otp_walk_word(w, w->ready.plan.link));
	if (w->ready.plan.step == OTP_WALK_STACK)
		otp_walk_next_block(w);
	else if (w->ready.plan.step != OTP_WALK_LINK)
		w->at += w->ready.plan.stride;
	else
		w->at = otp_walk_word(w, w->ready.plan.link) & ~(__u64)w->ready.plan.tag;
	return 0;
}

/* --- a walk --- */

/* To the slot of the table that the chain led to, and what is in it; 0, or 1: the walk is over. */
static __always_inline int otp_walk_find_slot(struct otp_walker *w, __u64 table)
{
	const struct otp_walk_hashed *h = &w->ready.plan.hashed;
	__u64 size = 0, slot;

	if (otp_walk_pointer(w, &size, table + h->size))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	slot = h->hash & (__u32)size;
	if (slot >= size >> 32)
		slot = h->hash & (__u32)size >> 1;
	if (otp_walk_pointer(w, &w->node, table + h->slots + 8 * slot))
		return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
	return w->node ? 0 : otp_walk_over(w, OTP_WALK_END_NO_ROOT);
}

/* Follows the chain; 0, or 1: the walk is over. *root: where root_at is, if it got there. */
static __always_inline int otp_walk_follow(struct otp_walker *w, __u64 tls, __u64 *root)
{
	const struct otp_walk *p = &w->ready.plan;
	__u64 at = p->base;
	__u32 i;

	if (p->start == OTP_WALK_TLS) {
		if (!tls)
			return otp_walk_over(w, OTP_WALK_END_NO_ROOT);
		at += tls;
	}
	if (!p->root_at)
		*root = at;
	for (i = 0; i < OTP_WALK_CHAIN; i++) {
		if (i >= p->nr_chain)
			break;
		if (otp_walk_pointer(w, &w->node, at + p->chain[i]))
			return otp_walk_over(w, OTP_WALK_END_UNREADABLE);
		at = w->node;
		if (!at)
			return otp_walk_over(w, OTP_WALK_END_NO_ROOT);
		if (!i)
			w->own = at;
		if (i + 1 == p->root_at)
			*root = at;
	}
	w->node = at;
	if (otp_walk_has_table(p) && otp_walk_find_slot(w, at))
		return 1;
	w->node &= ~(__u64)p->tag;
	return 0;
}

/*
 * Begins the walk of w->ready: its chain, its root. out begins with room for
 * struct otp_walked, which otp_walk_finish fills in. 0, or 1: it is over already.
 */
static __always_inline int otp_walk_begin(struct otp_walker *w, __u64 tls)
{
	__u64 root = 0;
	int over;

	if (!w->taken)
		w->reads = 0;
	w->end = OTP_WALK_END_FRAMES; /* unless a step ends the walk before */
	w->tls = tls;
	w->frames = w->root_words = w->nodes = 0;
	w->base = w->window = 0;
	__builtin_memset(w->held, 0, sizeof(w->held));
	w->used = OTP_WALK_HEAD;
	if (w->ready.plan.start == OTP_WALK_CALL)
		return otp_walk_enter_calls(w);
	over = otp_walk_follow(w, tls, &root);
	if ((over && !root) || otp_walk_root(w, root) || over)
		return 1;
	w->root = root;
	return otp_walk_enter(w);
}

/* Copies what is kept of the frame: its words, and those of its subs. */
static __always_inline void otp_walk_copy(struct otp_walker *w, __u64 address, __u32 words)
{
	__u64 to = w->used, from;
	__u32 i;

	otp_walk_put(w, address);
	for (i = 0; i < OTP_WALK_ROWS * OTP_WALK_WORDS && i + 1 < words; i++) {
		from = w->ready.pick[i];
		from += w->base * ((from - OTP_WALK_WORDS) >> 63); /* of the frame's row; no branch, for the verifier */
		to++;
		OTP_WALK_OPAQUE(from);
		OTP_WALK_OPAQUE(to);
		w->out[to & (OTP_WALK_OUT - 1)] = w->raw[from & (OTP_WALK_RAW - 1)];
	}
	w->used = (__u32)to + 1;
}

/* Why the frame at w->at is not copied; 0: it is. DONE is never a reason. */
static __always_inline __u32 otp_walk_refusal(const struct otp_walker *w, __u32 words)
{
	if (w->frames >= w->ready.plan.frames_max || w->frames >= OTP_WALK_FRAMES)
		return OTP_WALK_END_FRAMES;
	if (w->taken + 1 + w->used + words > OTP_WALK_OUT - OTP_WALK_SPARE)
		return OTP_WALK_END_BYTES;
	return 0;
}

/*
 * One step: copies the frame at w->at, and goes on to the next one. 0, or 1: the
 * walk is over, for w->end. words: w->ready.words. A list of n frames takes n + 1 steps;
 * an empty array takes one too.
 */
static __always_inline int otp_walk_frame(struct otp_walker *w, __u32 words)
{
	__u64 missing = 0;
	__u32 refusal;
	__u32 i;

	/* First of all: a step through empty arrays copies nothing, but reads. */
	if (w->reads >= OTP_WALK_READS)
		return otp_walk_over(w, OTP_WALK_END_READS);
	if (otp_walk_passed(w)) {
		if (otp_walk_leave(w))
			return 1;
		if (otp_walk_passed(w))
			return 0;
	}
	refusal = otp_walk_refusal(w, words);
	if (refusal)
		return otp_walk_over(w, refusal);
	if (w->ready.plan.step == OTP_WALK_STACK && w->from) {
		if (otp_walk_read_records(w))
			return 0;
		missing = OTP_WALK_MISSING(0);
	} else if (otp_walk_row(w)) {
		return otp_walk_pass_by(w);
	}
	otp_walk_mend(w);
	for (i = 0; i < OTP_WALK_SUBS; i++) {
		if (i >= w->ready.plan.nr_subs)
			break;
		missing |= otp_walk_sub(w, i);
	}
	if (w->ready.plan.step == OTP_WALK_CHUNKS && w->from)
		missing = OTP_WALK_MISSING(0);
	otp_walk_copy(w, (w->at & OTP_WALK_ADDRESS) | missing, words);
	w->frames++;
	return otp_walk_next(w);
}

/* Fills in the section's head. Returns the bytes of its payload, which are at w->out. */
static __always_inline __u32 otp_walk_finish(struct otp_walker *w, __u32 generation, __u32 plan)
{
	struct otp_walked head = {
		.generation = generation,
		.frames = (__u16)w->frames,
		.root_words = (__u16)w->root_words,
		.frame_words = (__u16)w->ready.words,
		.plan = (__u8)plan,
		.end = (__u8)w->end,
		.step = w->ready.plan.step,
	};

	__builtin_memcpy(w->out, &head, sizeof(head));
	w->taken += 1 + w->used;
	return w->used * 8;
}

/* The steps of the longest walk. */
#define OTP_WALK_STEPS (OTP_WALK_FRAMES + 1)

/* A whole walk by w->ready, where no verifier has to follow it. Returns as otp_walk_finish. */
static inline __u32 otp_walk_run(struct otp_walker *w, __u64 tls, __u32 generation, __u32 plan)
{
	int over = otp_walk_begin(w, tls);
	__u32 i;

	for (i = 0; !over && i < OTP_WALK_STEPS; i++)
		over = otp_walk_frame(w, w->ready.words);
	return otp_walk_finish(w, generation, plan);
}

#endif /* OTP_WALK_READ */

#endif /* OTPROF_WALK_UAPI_H */
