// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/park.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"

void park_init(struct park *p)
{
	*p = (struct park){0};
	p->last = &p->first;
}

void park_done(struct park *p)
{
	while (p->first)
		park_remove(p, &p->first);
}

static uint32_t sample_regs(const struct sample *s)
{
	if (!s->reg)
		return 0;
	return s->head.arch == OTP_ARCH_ARM64 ? OTP_REGS_ARM64 : OTP_REGS_X86_64;
}

static size_t park_walks_bytes(const struct sample *s)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < OTP_WALK_PLANS; i++)
		bytes += s->walks[i] ? sample_walk_bytes(s->walks[i]) : 0;
	return bytes;
}

static uint64_t *park_copy_walks(struct sample *to, uint64_t *at)
{
	for (uint32_t i = 0; i < OTP_WALK_PLANS; i++) {
		const struct otp_walked *from = to->walks[i];

		if (!from)
			continue;
		memcpy(at, from, sample_walk_bytes(from));
		to->walks[i] = (const struct otp_walked *)at;
		at += sample_walk_bytes(from) / sizeof(*at);
	}
	return at;
}

/* Copies registers, kernel stack, walks, stack bytes and base, one after the other. */
static void copy_sample(struct parked *e, const struct sample *s)
{
	uint64_t *to = e->data;

	e->sample = *s;
	if (s->reg) {
		memcpy(to, s->reg, sample_regs(s) * sizeof(*to));
		e->sample.reg = to;
		to += sample_regs(s);
	}
	if (s->nr_kernel) {
		memcpy(to, s->kernel, s->nr_kernel * sizeof(*to));
		e->sample.kernel = to;
		to += s->nr_kernel;
	}
	to = park_copy_walks(&e->sample, to);
	if (s->stack_len) {
		memcpy(to, s->stack, s->stack_len);
		e->sample.stack = (const uint8_t *)to;
	}
	if (s->base_len) {
		e->sample.base = (const uint8_t *)to + s->stack_len;
		memcpy((uint8_t *)to + s->stack_len, s->base, s->base_len);
	}
}

static size_t *park_held(struct park *p, const struct sample *s)
{
	return &p->held[s->head.pid % PARK_HELD];
}

static bool park_has_room(struct park *p, const struct sample *s, size_t bytes)
{
	return p->bytes + bytes <= PARK_BYTES && *park_held(p, s) + bytes <= PARK_SHARE * (PARK_BYTES - p->bytes - bytes);
}

int park_add(struct park *p, const struct sample *s, const struct process *proc, uint64_t deadline_ns, bool wants_maps)
{
	size_t bytes = sizeof(struct parked) + (sample_regs(s) + s->nr_kernel) * sizeof(uint64_t) + park_walks_bytes(s) +
		       s->stack_len + s->base_len;
	struct parked *e;

	if (!park_has_room(p, s, bytes))
		return -ENOSPC;
	e = secret_new(bytes);
	if (!e)
		return -ENOMEM;
	*e = (struct parked){.space = space_ref(proc->space), .workload = workload_ref(proc->workload),
			     .exe = str_ref(proc->exe), .comm = str_ref(proc->comm), .deadline_ns = deadline_ns, .bytes = bytes,
			     .wants_maps = wants_maps};
	copy_sample(e, s);
	*p->last = e;
	p->last = &e->next;
	p->count++;
	p->bytes += bytes;
	*park_held(p, s) += bytes;
	return 0;
}

void park_remove(struct park *p, struct parked **slot)
{
	struct parked *e = *slot;
	size_t bytes = e->bytes;

	*slot = e->next;
	if (p->last == &e->next)
		p->last = slot;
	p->count--;
	p->bytes -= bytes;
	*park_held(p, &e->sample) -= bytes;
	space_put(e->space);
	workload_put(e->workload);
	str_put(e->exe);
	str_put(e->comm);
	secret_free(e, bytes);
}
