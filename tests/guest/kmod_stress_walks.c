// SPDX-License-Identifier: Apache-2.0
/* Walks that lead anywhere: through the words of a process that change under them, and out of its memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kmod_stress.h"
#include "kmod/uapi/otprof.h"

#define LOOPS_MAX   20000 /* of changes, however fast the kernel */
#define WORDS	    512
#define PATIENCE_MS 20000 /* for the first walk, in a guest that has little of its CPU */

/* Pointers into themselves, to nowhere, into the kernel's half: what the walks go through. */
static volatile uint64_t maze[WORDS];

static uint64_t anywhere(struct rng *r)
{
	uint64_t to = (uintptr_t)&maze[rng_next(r) % WORDS];

	switch (rng_next(r) % 8) {
	case 0:
		return 0;
	case 1:
		return rng_next(r);
	case 2:
		return to | 1;
	case 3:
		return 0xffff800000000000ull + rng_next(r) % (1ull << 46);
	default:
		return to;
	}
}

static struct otp_walk_edge edge_any(struct rng *r)
{
	return (struct otp_walk_edge){.at = (int16_t)(rng_next(r) % 64 * 8), .count_at = (int16_t)(rng_next(r) % 512),
				      .scale = (int32_t)(rng_next(r) % 3 * 24), .bias = (int32_t)(rng_next(r) % 128) - 64};
}

/* Of blocks, whole. */
static void chunks_any(struct rng *r, struct otp_walk *w)
{
	w->step = OTP_WALK_CHUNKS;
	w->stride = OTP_WALK_BLOCK;
	w->keep = (1u << OTP_WALK_WORDS) - 1;
	w->copy_off = 0;
	w->nr_subs = w->tag = 0;
	w->low = w->via = w->via_at = 0;
	w->chunks = (struct otp_walk_chunks){
		.base = rng_next(r), .owner = (int16_t)(rng_next(r) % 64 * 8), .chunk = (int16_t)(rng_next(r) % 64 * 4),
		.outer = (int16_t)(rng_next(r) % 64 * 4), .sp = (int16_t)(rng_next(r) % 31 * 4), .end = (int16_t)(rng_next(r) % 31 * 4),
		.stack = (int16_t)(rng_next(r) % 128), .shift = (uint8_t)(rng_next(r) % 4), .wide = (uint8_t)(rng_next(r) % 2),
		.also = rng_next(r) % 2 ? (uintptr_t)&maze[rng_next(r) % WORDS] : 0,
	};
}

static struct otp_walk walk_any(struct rng *r, uint64_t base)
{
	struct otp_walk w = {.start = (uint8_t)(rng_next(r) % (OTP_WALK_TLS + 1)),
			     .step = (uint8_t)(rng_next(r) % (OTP_WALK_STACK + 1)), .link = (uint8_t)(rng_next(r) % 8),
			     .nr_chain = (uint8_t)(rng_next(r) % 3), .nr_subs = (uint8_t)(rng_next(r) % (OTP_WALK_SUBS + 1)),
			     .tag = (uint8_t)(rng_next(r) % 8), .base = base, .root_keep = (uint16_t)rng_next(r),
			     .frames_max = (uint16_t)(1 + rng_next(r) % OTP_WALK_FRAMES), .keep = (uint16_t)rng_next(r),
			     .copy_off = (int16_t)rng_next(r), .stride = (int32_t)(rng_next(r) % 256 - 128) | 8,
			     .outer = (int32_t)(rng_next(r) % 64 * 8), .first = edge_any(r), .last = edge_any(r)};

	for (unsigned int i = 0; i < w.nr_subs; i++)
		w.sub[i] = (struct otp_walk_sub){.from = (uint8_t)(rng_next(r) % (i + 1)), .at = (uint8_t)(rng_next(r) % 8),
						 .keep = (uint16_t)rng_next(r)};
	if (w.step == OTP_WALK_STACK) {
		w.stride = OTP_WALK_BLOCK;
		w.tag = 0;
		w.low = (int16_t)(rng_next(r) % 64 * 8);
		w.far = (int32_t)(rng_next(r) % (w.frames_max < 64 ? w.frames_max : 64) * OTP_WALK_BLOCK);
		w.held.at_reg = (uint8_t)(rng_next(r) % OTP_WALK_REGS);
	}
	if (w.step == OTP_WALK_STACK || (w.step == OTP_WALK_LINK && rng_next(r) % 2)) {
		w.via = (int16_t)(8 + rng_next(r) % 64 * 8);
		w.via_at = (int16_t)(rng_next(r) % 64 * 8);
	}
	if (w.step == OTP_WALK_LINK && rng_next(r) % 2)
		w.hashed = (struct otp_walk_hashed){.hash = rng_next(r), .size = (int16_t)(rng_next(r) % 64 * 8),
						    .slots = (int16_t)(rng_next(r) % 64 * 8)};
	w.kinds = rng_next(r) % 2 ? 0 : (uint32_t)(rng_next(r) & 0xffff);
	if (w.start != OTP_WALK_NONE && rng_next(r) % 4 == 0)
		chunks_any(r, &w);
	return w;
}

struct otp_walks walks_any(struct rng *r, uint64_t base)
{
	struct otp_walks w = {.generation = 1 + (uint32_t)rng_next(r) % 1000};

	for (unsigned int i = 0; i < OTP_WALK_PLANS; i++)
		w.plan[i] = walk_any(r, base);
	return w;
}

struct seen {
	uint64_t start_ns, exec_id; /* of this process, by its samples */
	unsigned long samples, walks, wrong;
};

static void see_sections(struct seen *s, const struct otp_sample *head)
{
	const uint8_t *at = (const uint8_t *)(head + 1), *end = (const uint8_t *)head + head->rec.len;

	while ((size_t)(end - at) >= sizeof(struct otp_section)) {
		struct otp_section section;
		struct otp_walked walked;

		memcpy(&section, at, sizeof(section));
		at += sizeof(section);
		if (section.len > (size_t)(end - at)) {
			s->wrong += section.type == OTP_SEC_WALK;
			return;
		}
		if (section.type == OTP_SEC_WALK) {
			memcpy(&walked, at, sizeof(walked));
			s->walks++;
			s->wrong += section.len < sizeof(walked) || section.len > OTP_WALK_BYTES ||
				    walked.frames > OTP_WALK_FRAMES || walked.end >= OTP_WALK_END_NR;
		}
		at += (section.len + 7) & ~7u;
	}
}

static void see(struct owner *o, struct seen *s)
{
	const struct otp_rec *rec;
	uint64_t end = owner_seen(o);
	uint32_t len;

	while ((rec = owner_next(o, end, &len))) {
		const struct otp_sample *head = (const void *)rec;

		if (rec->type != OTP_REC_SAMPLE || head->pid != (uint32_t)getpid())
			continue;
		s->samples++;
		s->start_ns = head->start_ns;
		s->exec_id = head->exec_id;
		see_sections(s, head);
	}
	owner_release(o, o->pos);
}

static int set_walks(const struct owner *o, const struct seen *s, struct rng *r)
{
	struct otprof_set_plan plan = {.op = OTPROF_SET, .pid = (uint32_t)getpid(),
				       .plan = {.generation = 1, .start_ns = s->start_ns, .exec_id = s->exec_id,
						.stack_bytes = OTP_STACK_FLOOR, .select = OTP_SELECT_YES,
						.flags = OTP_PLAN_WALK}};
	struct otprof_set_walks walks = {.op = rng_next(r) % 8 ? OTPROF_SET : OTPROF_REMOVE, .pid = (uint32_t)getpid()};
	int err = call(o->dev, OTPROF_IOC_PLAN, &plan);

	walks.walks = walks_any(r, anywhere(r));
	walks.walks.start_ns = s->start_ns;
	walks.walks.exec_id = s->exec_id;
	/* Of two plans that are none nothing would be set. */
	if (walks.walks.plan[0].start == OTP_WALK_NONE)
		walks.walks.plan[0].start = OTP_WALK_AT;
	return err < 0 ? err : call(o->dev, OTPROF_IOC_WALKS, &walks);
}

/* The maze changes while it is walked. */
static void wander(struct rng *r)
{
	for (int i = 0; i < 200000; i++)
		maze[rng_next(r) % WORDS] = i % 64 ? maze[i % WORDS] : anywhere(r);
}

bool stress_walks(unsigned long ms)
{
	struct otprof_config c = config_good(997, 1 << 20);
	unsigned long failed = 0, times = 0;
	uint64_t end = now_ms() + ms;
	struct seen s = {0};
	struct rng r = rng_new();
	struct owner o;
	int err;

	c.walks_max = 64;
	err = owner_open(&o, &c);
	for (; err == 0 && times < LOOPS_MAX && now_ms() < (s.walks ? end : end + PATIENCE_MS); times++) {
		wander(&r);
		see(&o, &s);
		failed += s.start_ns && set_walks(&o, &s, &r) < 0;
	}
	owner_close(&o);
	return fact(err == 0 && s.samples && s.walks && !s.wrong && !failed,
		    "%lu walks that lead anywhere, in %lu samples: %lu malformed, %lu of %lu not set", s.walks, s.samples,
		    s.wrong, failed, times);
}
