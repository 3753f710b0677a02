// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/engine/runtimes_state.h"

/* --- processes --- */

static struct attachment *attachment_put(struct attachment *a)
{
	if (a && !--a->refs)
		free(a);
	return NULL;
}

void runtime_slot_done(struct runtime_slot *s)
{
	if (s->decoder)
		decoders_drop(s->decoder);
	functions_done(&s->functions);
	codes_done(&s->codes);
	attachment_put(s->found);
	binary_put(s->binary);
	labels_done(&s->labels);
	free(s->runs);
}

static void runtime_process_unlink(struct runtime_process *p)
{
	struct runtimes *r = p->all;

	*(p->prev ? &p->prev->next : &r->first) = p->next;
	*(p->next ? &p->next->prev : &r->last) = p->prev;
}

static void runtime_process_link(struct runtime_process *p)
{
	struct runtimes *r = p->all;

	p->prev = NULL;
	p->next = r->first;
	*(r->first ? &r->first->prev : &r->last) = p;
	r->first = p;
}

static void runtime_process_free(struct runtime_process *p)
{
	struct runtimes *r = p->all;

	if (r->stack_of == p)
		r->stack_of = NULL;
	runtime_process_unlink(p);
	if (map_find_ptr(&r->by_pid, p->pid) == p)
		map_remove(&r->by_pid, p->pid);
	if (map_find_ptr(&r->by_generation, p->generation) == p)
		map_remove(&r->by_generation, p->generation);
	for (uint32_t i = 0; i < p->nr; i++)
		runtime_slot_done(&p->slot[i]);
	free(p);
}

static bool runtime_process_is(const struct runtime_process *have, const struct process *p)
{
	return have->start_ns == p->start_ns && have->exec_id == p->exec_id;
}

struct runtime_process *runtimes_peek(const struct runtimes *r, const struct process *p)
{
	struct runtime_process *have = map_find_ptr(&r->by_pid, p->pid);

	return have && runtime_process_is(have, p) ? have : NULL;
}

struct runtime_process *runtimes_find(struct runtimes *r, const struct process *p)
{
	struct runtime_process *have = map_find_ptr(&r->by_pid, p->pid);

	if (!have)
		return NULL;
	if (!runtime_process_is(have, p)) {
		runtime_process_free(have);
		return NULL;
	}
	runtime_process_unlink(have);
	runtime_process_link(have);
	return have;
}

/* Which entry is missed least: a group that has half of them makes room for its own. */
static struct runtime_process *runtimes_oldest(const struct runtimes *r, uint64_t group)
{
	struct runtime_process *of_group = NULL;
	uint32_t same = 0;

	for (struct runtime_process *p = r->first; p; p = p->next)
		if (p->group == group) {
			of_group = p;
			same++;
		}
	return same >= RUNTIME_PROCESSES_MAX / 2 ? of_group : r->last;
}

struct runtime_process *runtime_process_add(struct runtimes *r, const struct process *p)
{
	struct runtime_process *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	if (r->by_pid.count >= RUNTIME_PROCESSES_MAX)
		runtime_process_free(runtimes_oldest(r, p->cgroup_id));
	*n = (struct runtime_process){.all = r, .pid = p->pid, .start_ns = p->start_ns, .exec_id = p->exec_id,
				      .group = p->cgroup_id};
	if (map_put_ptr(&r->by_pid, p->pid, n) < 0) {
		free(n);
		return NULL;
	}
	runtime_process_link(n);
	return n;
}

/* The walks have changed: a new generation. */
static void runtime_process_renew(struct runtime_process *p)
{
	struct runtimes *r = p->all;

	if (map_find_ptr(&r->by_generation, p->generation) == p)
		map_remove(&r->by_generation, p->generation);
	if (!++r->generation)
		r->generation = 1;
	p->generation = r->generation;
	map_put_ptr(&r->by_generation, p->generation, p);
}

/* --- attaching --- */

static void runtimes_settled(struct runtimes *r)
{
	if (r->cfg.settled)
		r->cfg.settled(r->cfg.ctx);
}

/* When what was refused for this reason may be otherwise. */
static uint64_t runtimes_again_ns(const struct runtimes *r, int err)
{
	switch (err) {
	case -EBUSY:
		return r->now_ns + RETRY_NS;
	case -EIO:
	case -ENOMEM:
	case -ETIMEDOUT:
		return r->now_ns + RETRY_LONG_NS;
	default:
		return UINT64_MAX;
	}
}

void runtimes_refuse(struct runtime_slot *s, int err, const char *why)
{
	struct runtimes *r = s->of->all;

	s->state = SLOT_REFUSED;
	s->err = err;
	s->again_ns = runtimes_again_ns(r, err);
	snprintf(s->why, sizeof(s->why), "%s", why && *why ? why : strerrordesc_np(-err));
	r->cfg.ledger->runtimes_refused++;
	if (err == -ENOTSUP && r->cfg.unknown)
		r->cfg.unknown(r->cfg.ctx, s->of->pid, s->ops->label, s->why);
}

/* When the answer of its decoder came: the turn's own time may be before the decoder read anything. */
static uint64_t runtimes_answer_ns(const struct runtime_slot *s)
{
	return !s->decoder || decoder_is_replayed(s->decoder) ? s->of->all->now_ns : clock_now_ns();
}

static void runtimes_accept(struct runtime_slot *s, const struct runtime_attached *a)
{
	s->found = calloc(1, sizeof(*s->found));
	if (!s->found) {
		runtimes_refuse(s, -ENOMEM, "");
		return;
	}
	s->found->refs = 1;
	s->found->found = *a;
	s->state = SLOT_READY;
	s->attached_ns = runtimes_answer_ns(s);
	s->vouched = true;
	s->of->all->cfg.ledger->runtimes_attached++;
	if (a->walk.start == OTP_WALK_NONE && a->more.start == OTP_WALK_NONE)
		return;
	runtime_process_renew(s->of);
	if (s->of->all->cfg.walks)
		s->of->all->cfg.walks(s->of->all->cfg.ctx, s->of->pid);
}

/* A fork's decoder attaches as well, to what its parent's has found already; from then on it has walks of its own. */
static void runtimes_vouch(struct runtime_slot *s)
{
	s->vouched = true;
	runtime_process_renew(s->of);
}

/* What it has by its parent is not what its own memory says: it is the fork of another process. */
static void runtimes_compare(struct runtime_slot *s, const struct runtime_attached *a)
{
	if (!memcmp(&s->found->found.walk, &a->walk, sizeof(a->walk)) &&
	    !memcmp(&s->found->found.more, &a->more, sizeof(a->more))) {
		runtimes_vouch(s);
		return;
	}
	s->found = attachment_put(s->found);
	functions_done(&s->functions);
	runtimes_accept(s, a);
}

static void runtimes_on_attached(void *ctx, struct decoder *d, int err, const struct runtime_attached *a, const char *why)
{
	struct runtime_slot *s = decoder_owner(d);

	if (err) {
		s->decoder = decoders_drop(d);
		s->of->retry_ns = s->of->all->now_ns + RETRY_OVER_NS;
		if (s->state == SLOT_ASKED)
			runtimes_refuse(s, err, why);
	} else if (s->state == SLOT_ASKED) {
		runtimes_accept(s, a);
		if (!s->ops->decode) /* it has nothing else to answer */
			s->decoder = decoders_drop(d);
	} else if (!s->vouched && a->walk.start != OTP_WALK_NONE) {
		runtimes_compare(s, a);
	}
	runtimes_settled(s->of->all);
}

static void runtimes_on_function(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
				 const struct runtime_function *fn)
{
	struct runtime_slot *s = decoder_owner(d);
	struct function_entry *e = functions_find(&s->functions, f);

	if (e && e->state == FUNCTION_ASKED)
		functions_settle(&s->functions, e, err, fn, s->of->all->now_ns);
	runtimes_settled(s->of->all);
}

static void runtimes_on_code(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
			     const struct runtime_code_made *c)
{
	struct runtime_slot *s = decoder_owner(d);

	codes_settle(&s->codes, f->key, err, c, runtimes_answer_ns(s));
	runtimes_settled(s->of->all);
}

static const struct decoders_ops runtimes_decoders_ops = {
	.attached = runtimes_on_attached,
	.function = runtimes_on_function,
	.code = runtimes_on_code,
};

/* Which decoder is missed least: of the process that was sampled longest ago, of the group if that has too many. */
static struct runtime_slot *runtimes_oldest_decoder(const struct runtime_process *but)
{
	const struct runtimes *r = but->all;
	bool of_group = decoders_group_is_full(r->cfg.decoders, but->group);

	for (struct runtime_process *p = r->last; p; p = p->prev)
		for (uint32_t i = 0; p != but && i < p->nr; i++)
			if (p->slot[i].decoder && (!of_group || p->group == but->group))
				return &p->slot[i];
	return NULL;
}

/* A process that goes on has another one when it needs it, and asks again what was not answered. */
static bool runtimes_make_room(const struct runtime_process *for_this)
{
	struct runtime_slot *s = runtimes_oldest_decoder(for_this);

	if (!s)
		return false;
	s->decoder = decoders_drop(s->decoder);
	functions_done(&s->functions);
	codes_done(&s->codes);
	if (s->state == SLOT_ASKED)
		runtimes_refuse(s, -EBUSY, "too many processes are being decoded");
	return true;
}

struct decoder *runtimes_ask(struct runtime_slot *s)
{
	struct decoders_target t = {.pid = s->of->pid, .start_ns = s->of->start_ns, .exec_id = s->of->exec_id,
					  .group = s->of->group, .binary = s->binary, .start = s->start, .end = s->end,
					  .thread = s->of->thread};
	struct decoders *ds = s->of->all->cfg.decoders;

	if (!decoders_has_room(ds, t.group) && !runtimes_make_room(s->of))
		return NULL;
	runtimes_see(s->of->all, s, &t.seen);
	return decoders_attach(ds, &t, s);
}

struct decoder *runtimes_decoder(struct runtime_slot *s)
{
	struct runtimes *r = s->of->all;

	if (!s->decoder && r->cfg.decoders && r->now_ns >= s->of->retry_ns) {
		s->of->retry_ns = r->now_ns + RETRY_NS;
		s->decoder = runtimes_ask(s);
	}
	return s->decoder;
}

uint64_t runtimes_worth_from(const struct process *p)
{
	return p->exit_time_ns ? UINT64_MAX : MAX(p->start_ns, p->exec_time_ns) + RUNTIME_YOUNG_NS;
}

struct runtime_process *runtimes_inherit(struct runtimes *r, const struct process *p, struct runtime_process *parent)
{
	struct runtime_process *n;

	/* Of the two, one with forks is in use: it is not what makes room. */
	runtime_process_unlink(parent);
	runtime_process_link(parent);
	n = runtime_process_add(r, p);
	if (!n)
		return NULL;
	for (uint32_t i = 0; i < parent->nr; i++) {
		const struct runtime_slot *from = &parent->slot[i];

		n->slot[i] = (struct runtime_slot){.of = n, .ops = from->ops, .binary = binary_ref(from->binary),
						   .start = from->start, .end = from->end, .state = from->state,
						   .err = from->err, .again_ns = from->again_ns, .found = from->found};
		if (from->found)
			from->found->refs++;
		if (from->state == SLOT_ASKED) /* it asks for itself, from its next sample on */
			n->slot[i].state = SLOT_REFUSED;
	}
	n->nr = parent->nr;
	n->thread = parent->thread;
	n->worth_ns = n->retry_ns = runtimes_worth_from(p);
	for (uint32_t i = 0; i < n->nr; i++)
		if (n->slot[i].state == SLOT_READY)
			runtimes_decoder(&n->slot[i]);
	return n;
}

struct runtime_slot *runtimes_more(struct runtime_process *p)
{
	struct runtime_slot *first = &p->slot[0], *last;

	if (!p->nr || first->state != SLOT_READY || first->found->found.more.start == OTP_WALK_NONE)
		return NULL;
	last = &p->slot[OTP_WALK_PLANS - 1];
	return p->nr < OTP_WALK_PLANS || last->state != SLOT_READY || last->found->found.walk.start == OTP_WALK_NONE ? first : NULL;
}

bool runtimes_wait(const struct runtimes *r, const struct process *p)
{
	const struct runtime_process *have = runtimes_peek(r, p);

	if (have && r->now_ns < have->worth_ns)
		return true;
	for (uint32_t i = 0; have && i < have->nr; i++)
		if (have->slot[i].decoder && !decoder_is_attached(have->slot[i].decoder))
			return true;
	return false;
}

bool runtimes_walks(struct runtimes *r, const struct process *p, struct otp_walks *ret)
{
	struct runtime_process *have = runtimes_peek(r, p);

	if (!have || !have->generation || have->generation == p->walks)
		return false;
	*ret = (struct otp_walks){.generation = have->generation, .start_ns = have->start_ns, .exec_id = have->exec_id};
	for (uint32_t i = 0; i < have->nr; i++)
		if (have->slot[i].vouched)
			ret->plan[i] = have->slot[i].found->found.walk;
	if (runtimes_more(have) && have->slot[0].vouched)
		ret->plan[OTP_WALK_PLANS - 1] = have->slot[0].found->found.more;
	return true;
}

/* --- the whole --- */

size_t runtimes_bytes(void)
{
	return functions_bytes() + codes_bytes();
}

static size_t runtime_slot_bytes(const struct runtime_slot *s)
{
	return s->functions.bytes + s->codes.bytes;
}

static struct runtime_slot *runtimes_largest(const struct runtimes *r)
{
	struct runtime_slot *largest = NULL;

	for (struct runtime_process *p = r->first; p; p = p->next)
		for (uint32_t i = 0; i < p->nr; i++)
			if (!largest || runtime_slot_bytes(&p->slot[i]) > runtime_slot_bytes(largest))
				largest = &p->slot[i];
	return largest;
}

void runtimes_trim(struct runtimes *r)
{
	struct runtime_slot *largest;

	while (runtimes_bytes() > r->cfg.bytes_max && (largest = runtimes_largest(r)) && runtime_slot_bytes(largest)) {
		functions_done(&largest->functions);
		codes_done(&largest->codes);
	}
}

int runtimes_new(const struct runtimes_config *cfg, struct runtimes **ret)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	if (cfg->decoders)
		decoders_listen(cfg->decoders, &runtimes_decoders_ops, r);
	*ret = r;
	return 0;
}

struct runtimes *runtimes_free(struct runtimes *r)
{
	if (!r)
		return NULL;
	while (r->first)
		runtime_process_free(r->first);
	map_done(&r->by_pid);
	map_done(&r->by_generation);
	for (size_t i = 0; i < ARRAY_SIZE(r->unknown); i++)
		str_put(r->unknown[i]);
	str_put(r->labels);
	free(r);
	return NULL;
}

void runtimes_limit(struct runtimes *r, size_t bytes_max)
{
	r->cfg.bytes_max = bytes_max;
	runtimes_trim(r);
}

bool runtimes_state(const struct runtimes *r, const struct process *p, uint32_t i, struct runtimes_state *ret)
{
	const struct runtime_process *have = r ? runtimes_peek(r, p) : NULL;
	const struct runtime_slot *s;

	if (!have || i >= have->nr)
		return false;
	s = &have->slot[i];
	*ret = (struct runtimes_state){.label = s->ops->label, .version = s->found ? s->found->found.version : "",
				       .walked = s->state == SLOT_READY && (s->ops->frame || s->ops->stack) &&
						 s->found->found.walk.start != OTP_WALK_NONE,
				       .state = s->state == SLOT_ASKED ? "being attached" : s->why, .functions = s->functions.count,
				       .frames = s->frames, .frames_unknown = s->frames_unknown};
	return true;
}
