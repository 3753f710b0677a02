// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

/* A token bucket: PLANS_BURST at once, then one each PLANS_PAUSE. */
#define PLANS_BURST 2048
#define PLANS_PAUSE (NSEC_PER_SEC / 1000)

static bool plans_may_set(struct monitor *m)
{
	uint64_t now = clock_now_ns();
	uint64_t oldest = now > PLANS_BURST * PLANS_PAUSE ? now - PLANS_BURST * PLANS_PAUSE : 0;

	m->plans.tokens_ns = MAX(m->plans.tokens_ns, oldest);
	if (m->plans.tokens_ns + PLANS_PAUSE > now)
		return false;
	m->plans.tokens_ns += PLANS_PAUSE;
	return true;
}

static bool plans_is_sound(const struct monitor *m, const struct otp_plan *p)
{
	return p->generation && p->stack_bytes <= m->config->stack_max_bytes &&
	       p->base_units <= OTP_BASE_LIMIT / OTP_BASE_UNIT;
}

static int plans_set_one(struct monitor *m, uint32_t pid, struct otp_plan *p)
{
	targets_select(m, pid, p);
	return m->sampler.source->ops->set_plan(m->sampler.source, pid, p);
}

static int plans_remove_one(struct monitor *m, uint32_t pid)
{
	struct otp_plan p;

	return m->sampler.source->ops->set_plan(m->sampler.source, pid, targets_plan(m, pid, &p) ? &p : NULL);
}

void plans_set(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_plan *head = (const void *)msg->data;
	bool remove = msg->head.len >= sizeof(*head) && head->remove;
	struct otp_plan plan;
	int err;

	if ((msg->head.len != sizeof(*head) + sizeof(plan) && !(remove && msg->head.len == sizeof(*head))) || !head->pid) {
		log_warn("engine sent a plan of the wrong size: it is killed");
		worker_kill(&m->workers.engine);
		return;
	}
	if (!plans_may_set(m)) {
		m->plans.refused++;
		return;
	}
	if (remove) {
		err = plans_remove_one(m, head->pid);
	} else {
		memcpy(&plan, head + 1, sizeof(plan));
		err = plans_is_sound(m, &plan) ? plans_set_one(m, head->pid, &plan) : -EINVAL;
	}
	if (err)
		m->plans.refused++;
	else
		m->plans.set++;
}

/* Words for the operator, once: the engine keeps asking, process by process. */
static int walks_unsupported(struct monitor *m)
{
	if (!m->plans.logged_no_walks)
		log_notice("mode %s does not copy the frames of interpreters: their stacks show the interpreter's own functions",
			   m->sampler.source->ops->name);
	m->plans.logged_no_walks = true;
	return -EOPNOTSUPP;
}

static int walks_set_one(struct monitor *m, uint32_t pid, const struct otp_walks *w)
{
	if (!m->sampler.source->ops->set_walk)
		return walks_unsupported(m);
	if (w && (!otp_walk_sound(w) || !vouched_allows(&m->decoders.vouched, pid, w, clock_now_ns())))
		return -EPERM;
	return m->sampler.source->ops->set_walk(m->sampler.source, pid, w);
}

void walks_set(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_walk *head = (const void *)msg->data;
	bool remove = msg->head.len == sizeof(*head) && head->remove;
	struct otp_walks walks;

	if ((!remove && (msg->head.len != sizeof(*head) + sizeof(walks) || head->remove)) || !head->pid) {
		log_warn("engine sent walks of the wrong size: it is killed");
		worker_kill(&m->workers.engine);
		return;
	}
	if (!remove)
		memcpy(&walks, head + 1, sizeof(walks));
	if (!plans_may_set(m) || walks_set_one(m, head->pid, remove ? NULL : &walks))
		m->plans.refused++;
	else
		m->plans.set++;
}

void hints_set(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_hint *hint = (const void *)msg->data;

	if (msg->head.len != sizeof(*hint) || hint->hint.stack_bytes > OTP_STACK_LIMIT ||
	    hint->hint.base_bytes > OTP_BASE_LIMIT) {
		log_warn("engine sent a malformed hint: it is killed");
		worker_kill(&m->workers.engine);
		return;
	}
	/* The engine may not have received a lower bound yet. */
	if (hint->hint.stack_bytes > m->config->stack_max_bytes || !plans_may_set(m) || !m->sampler.source->ops->set_hint ||
	    m->sampler.source->ops->set_hint(m->sampler.source, hint->comm, hint->hint.stack_bytes ? &hint->hint : NULL))
		m->plans.refused++;
}
