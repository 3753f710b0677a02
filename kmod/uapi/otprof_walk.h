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
 * Contexts: the tick. Bounds: OTP_WALK_FRAMES frames and OTP_WALK_BYTES of a
 * sample, whatever a plan or a process' memory says.
 *
 * The includer defines, before it includes this:
 *   OTP_WALK_READ(to, len, from)   reads user memory; 0, or anything else; len
 *                                  is a multiple of 8 and at most 128
 *   OTP_WALK_OPAQUE(x)             keeps the compiler from dropping the mask that
 *                                  follows (bpf/), or nothing
 */
#ifndef OTPROF_WALK_UAPI_H
#define OTPROF_WALK_UAPI_H

#include "kmod/uapi/otprof.h"

#define OTP_WALK_PLANS	2   /* of a process */
#define OTP_WALK_CHAIN	6
#define OTP_WALK_SUBS	4
#define OTP_WALK_WORDS	16  /* of 8 bytes, that one read copies; a mask has a bit for each */
#define OTP_WALK_FRAMES 512 /* of one plan */
#define OTP_WALK_BYTES	16384 /* of all sections of one sample, heads included */

/* Where the chain of pointers to the list begins. */
enum otp_walk_start {
	OTP_WALK_NONE = 0, /* no plan */
	OTP_WALK_AT = 1,   /* base is an address */
	OTP_WALK_TLS = 2,  /* base is an offset from otp_sample.tls_base */
};

/* How one frame leads to the next. */
enum otp_walk_step {
	OTP_WALK_LINK = 0,  /* a pointer, word link of the frame; 0 ends the list */
	OTP_WALK_ARRAY = 1, /* step bytes on, to the last one of an array */
};

/*
 * More words, behind a pointer: of the frame (from 0), or of an earlier sub
 * (from 1 on). They serve as cookies: what tells whether an object is still the
 * one that the frame meant when its metadata is read, later.
 */
struct otp_walk_sub {
	__u8 from;
	__u8 at;     /* word that holds the pointer */
	__u8 tag;    /* bits of the pointer to clear */
	__u8 reserved;
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
 * The chain: from the start, each step reads the pointer at its offset from the
 * last. After root_at steps it is at the root (a thread's state), of which words
 * may be kept once for the sample. Where it ends lies the first frame, or for
 * ARRAY the node that describes an array. After an array, the pointer at outer
 * bytes from its node leads to the next node; outer 0: there is none.
 */
struct otp_walk {
	__u8 start; /* enum otp_walk_start */
	__u8 step;  /* enum otp_walk_step */
	__u8 nr_chain;
	__u8 nr_subs;
	__u8 root_at; /* 0: where the start is */
	__u8 link;    /* LINK: the word of the frame */
	__u8 tag;     /* bits to clear in links, and in the chain's last pointer */
	__u8 reserved;
	__u64 base;
	__s32 chain[OTP_WALK_CHAIN];
	__s32 root_off; /* bytes from the root to the first of its words */
	__u16 root_keep;
	__u16 frames_max; /* at most OTP_WALK_FRAMES */
	__s16 copy_off;	  /* bytes from the frame to the first of its words */
	__u16 keep;	  /* words of each frame to keep */
	__s32 stride;	  /* ARRAY: bytes from one frame to the next */
	__s32 outer;
	struct otp_walk_edge first, last; /* ARRAY: the first frame, and the last */
	struct otp_walk_sub sub[OTP_WALK_SUBS];
	__u32 reserved2[3];
};

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
	X(4, BYTES, "bytes", "the list has more bytes than one sample may hold")

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
	__u16 root_words;
	__u16 frame_words; /* of each frame, its address included */
	__u8 plan;	   /* index */
	__u8 end;	   /* enum otp_walk_end */
	__u32 reserved;
};

#define OTP_WALK_MISSING(sub) (1ULL << (56 + (sub)))
#define OTP_WALK_ADDRESS      ((1ULL << 56) - 1)

/*
 * The state of a walk between frames, too large for a stack; raw[0] holds the
 * frame, raw[1] on the subs. The plan is a copy: the original may change.
 */
struct otp_walker {
	struct otp_walk plan;
	__u64 at, last, node;
	__u32 used; /* words in out, of all plans so far */
	__u32 frames;
	__u32 end; /* enum otp_walk_end */
	__u32 reserved;
	__u64 raw[OTP_WALK_SUBS + 1][OTP_WALK_WORDS];
	__u64 out[OTP_WALK_BYTES / 8 + OTP_WALK_WORDS];
};

#define OTP_WALK_OUT (OTP_WALK_BYTES / 8)

OTP_CHECK(struct otp_walk_sub, 8);
OTP_CHECK(struct otp_walk_edge, 12);
OTP_CHECK(struct otp_walk, 128);
OTP_CHECK_AT(struct otp_walk, base, 8);
OTP_CHECK_AT(struct otp_walk, first, 60);
OTP_CHECK_AT(struct otp_walk, sub, 84);
OTP_CHECK(struct otp_walks, 280);
OTP_CHECK(struct otp_walked, 16);

#ifdef OTP_WALK_READ

/* Appends a word. No branch: beyond the room the last ones are written over, and otp_walk_full says so. */
static __always_inline void otp_walk_put(struct otp_walker *w, __u64 word)
{
	__u32 at = w->used;

	OTP_WALK_OPAQUE(at);
	w->out[at & (OTP_WALK_OUT - 1)] = word;
	w->used = at + 1;
}

/* Appends the words of raw[i] that the mask keeps: each is written, and the next one goes over it if it is not kept. */
static __always_inline void otp_walk_keep(struct otp_walker *w, __u32 i, __u16 keep)
{
	__u32 at = w->used;

	for (int word = 0; word < OTP_WALK_WORDS; word++) {
		OTP_WALK_OPAQUE(at);
		w->out[at & (OTP_WALK_OUT - 1)] = w->raw[i][word];
		at += (keep >> word) & 1;
	}
	w->used = at;
}

static __always_inline __u32 otp_walk_count(__u16 keep)
{
	__u32 n = 0;

	for (int word = 0; word < OTP_WALK_WORDS; word++)
		n += (keep >> word) & 1;
	return n;
}

/* Reads the words up to the last one that the mask keeps, or that holds a pointer, into raw[i]. */
static __always_inline int otp_walk_read(struct otp_walker *w, __u32 i, __u32 mask, __u64 from)
{
	__u32 bytes = 0;

	for (__u32 words = 1; words <= OTP_WALK_WORDS; words++)
		if ((mask >> (words - 1)) & 1)
			bytes = words * 8;
	OTP_WALK_OPAQUE(bytes);
	if (!bytes || bytes > OTP_WALK_WORDS * 8)
		return 0;
	return OTP_WALK_READ(w->raw[i], bytes, from);
}

static __always_inline int otp_walk_pointer(__u64 *to, __u64 from)
{
	return OTP_WALK_READ(to, 8, from);
}

/* The words of the frame that must be read: kept, or pointers. */
static __always_inline __u32 otp_walk_needs(const struct otp_walk *p, __u8 from)
{
	__u32 mask = 0;

	if (!from && p->step == OTP_WALK_LINK)
		mask |= 1U << (p->link & (OTP_WALK_WORDS - 1));
	for (int i = 0; i < OTP_WALK_SUBS; i++)
		if (i < p->nr_subs && p->sub[i].from == from)
			mask |= 1U << (p->sub[i].at & (OTP_WALK_WORDS - 1));
	return mask;
}

/* A sub that is missing is zeros. */
static __always_inline __u64 otp_walk_sub(struct otp_walker *w, __u32 i)
{
	const struct otp_walk_sub *s = &w->plan.sub[i];
	__u32 from = s->from, at = s->at;
	__u64 pointer;

	OTP_WALK_OPAQUE(from);
	OTP_WALK_OPAQUE(at);
	if (from > i)
		from = 0;
	pointer = w->raw[from][at & (OTP_WALK_WORDS - 1)] & ~(__u64)s->tag;
	for (int word = 0; word < OTP_WALK_WORDS; word++)
		w->raw[i + 1][word] = 0;
	if (!pointer || otp_walk_read(w, i + 1, s->keep | otp_walk_needs(&w->plan, i + 1), pointer + s->off))
		return OTP_WALK_MISSING(i);
	return 0;
}

static __always_inline int otp_walk_edge(__u64 *to, __u64 node, const struct otp_walk_edge *e)
{
	__u64 base, count;

	if (otp_walk_pointer(&base, node + e->at))
		return -1;
	if (e->scale) {
		if (otp_walk_pointer(&count, node + e->count_at))
			return -1;
		base += (__s64)(__s32)count * e->scale;
	}
	*to = base + e->bias;
	return 0;
}

/* To the first frame below the node; 0, or 1: the walk is over. */
static __always_inline int otp_walk_enter(struct otp_walker *w)
{
	const struct otp_walk *p = &w->plan;

	if (!w->node) {
		w->end = OTP_WALK_END_DONE;
		return 1;
	}
	w->at = w->node;
	if (p->step != OTP_WALK_ARRAY)
		return 0;
	if (otp_walk_edge(&w->at, w->node, &p->first) || otp_walk_edge(&w->last, w->node, &p->last)) {
		w->end = OTP_WALK_END_UNREADABLE;
		return 1;
	}
	return 0;
}

/* Whether there is no frame at w->at: an empty array, or past its last one. */
static __always_inline int otp_walk_passed(const struct otp_walker *w)
{
	if (w->plan.step != OTP_WALK_ARRAY)
		return !w->at;
	return w->plan.stride < 0 ? w->at < w->last : w->at > w->last;
}

/*
 * Begins the walk of w->plan: its chain, its root. Appends the head's two words,
 * which otp_walk_end fills in. 0, or 1: it is over already.
 */
static __always_inline int otp_walk_begin(struct otp_walker *w, __u64 tls)
{
	const struct otp_walk *p = &w->plan;
	__u64 at = p->start == OTP_WALK_TLS ? tls + p->base : p->base, root = at;

	w->frames = 0;
	otp_walk_put(w, 0);
	otp_walk_put(w, 0);
	w->end = OTP_WALK_END_NO_ROOT;
	if (p->start == OTP_WALK_TLS && !tls)
		return 1;
	for (__u32 i = 0; i < OTP_WALK_CHAIN; i++) {
		if (i >= p->nr_chain)
			break;
		if (otp_walk_pointer(&at, at + p->chain[i])) {
			w->end = OTP_WALK_END_UNREADABLE;
			return 1;
		}
		if (!at)
			return 1;
		if (i + 1 == p->root_at)
			root = at;
	}
	if (p->root_keep && otp_walk_read(w, 0, p->root_keep, root + p->root_off)) {
		w->end = OTP_WALK_END_UNREADABLE;
		return 1;
	}
	otp_walk_keep(w, 0, p->root_keep);
	w->node = at & ~(__u64)p->tag;
	return otp_walk_enter(w);
}

/* To the next node, if the array is over. */
static __always_inline int otp_walk_leave(struct otp_walker *w)
{
	if (w->plan.step != OTP_WALK_ARRAY || !w->plan.outer) {
		w->end = OTP_WALK_END_DONE;
		return 1;
	}
	if (otp_walk_pointer(&w->node, w->node + w->plan.outer)) {
		w->end = OTP_WALK_END_UNREADABLE;
		return 1;
	}
	return otp_walk_enter(w);
}

static __always_inline void otp_walk_next(struct otp_walker *w)
{
	__u32 link = w->plan.link;

	OTP_WALK_OPAQUE(link);
	if (w->plan.step == OTP_WALK_ARRAY)
		w->at += w->plan.stride;
	else
		w->at = w->raw[0][link & (OTP_WALK_WORDS - 1)] & ~(__u64)w->plan.tag;
}

/* Copies the frame at w->at, and goes on to the next. 0, or 1: the walk is over, for w->end. */
static __always_inline int otp_walk_frame(struct otp_walker *w, __u32 words)
{
	const struct otp_walk *p = &w->plan;
	__u32 head = w->used;
	__u64 address = w->at & OTP_WALK_ADDRESS;

	if (otp_walk_passed(w))
		return otp_walk_leave(w);
	if (w->frames >= p->frames_max || w->frames >= OTP_WALK_FRAMES) {
		w->end = OTP_WALK_END_FRAMES;
		return 1;
	}
	if (w->used + words > OTP_WALK_OUT) {
		w->end = OTP_WALK_END_BYTES;
		return 1;
	}
	if (otp_walk_read(w, 0, p->keep | otp_walk_needs(p, 0), w->at + p->copy_off)) {
		w->end = OTP_WALK_END_UNREADABLE;
		return 1;
	}
	otp_walk_put(w, address);
	otp_walk_keep(w, 0, p->keep);
	for (__u32 i = 0; i < OTP_WALK_SUBS; i++) {
		if (i >= p->nr_subs)
			break;
		address |= otp_walk_sub(w, i);
		otp_walk_keep(w, i + 1, p->sub[i].keep);
	}
	OTP_WALK_OPAQUE(head);
	w->out[head & (OTP_WALK_OUT - 1)] = address;
	w->frames++;
	otp_walk_next(w);
	return 0;
}

/* Words of one frame in the section. */
static __always_inline __u32 otp_walk_frame_words(const struct otp_walk *p)
{
	__u32 n = 1 + otp_walk_count(p->keep);

	for (int i = 0; i < OTP_WALK_SUBS; i++)
		if (i < p->nr_subs)
			n += otp_walk_count(p->sub[i].keep);
	return n;
}

#endif /* OTP_WALK_READ */

#endif /* OTPROF_WALK_UAPI_H */
