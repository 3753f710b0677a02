// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/selector.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

#define NAMES_NS (3 * NSEC_PER_SEC) /* longer than an opener may take */

struct config *selector_base(const struct monitor *m)
{
	return m->selector.base ? m->selector.base : m->config;
}

bool selector_is_busy(const struct monitor *m)
{
	return m->selector.config;
}

const struct selection_shown *selector_shown(const struct monitor *m)
{
	return m->selector.wanted ? &m->selector.next : &m->selector.shown;
}

/* --- in words --- */

static void selector_time(uint64_t unix_ns, char to[16])
{
	time_t at = (time_t)(unix_ns / NSEC_PER_SEC);
	struct tm local;

	if (!localtime_r(&at, &local) || !strftime(to, 16, "%H:%M:%S", &local))
		snprintf(to, 16, "?");
}

static void selector_log(const struct monitor *m)
{
	const struct selection_shown *s = &m->selector.shown;
	char until[16];

	selector_time(s->until_ns, until);
	log_notice("selection: until %s only this is sampled: %s; at %u Hz, %u bytes of an unknown stack (asked for by %s)",
		   until, s->what.nr_targets ? s->what.targets : "what the configuration selects", m->config->frequency_hz,
		   m->config->stack_bytes, s->by);
}

/* --- requests --- */

static int selector_refuse(char why[SELECTION_WHY], int err, const char *text)
{
	snprintf(why, SELECTION_WHY, "%s", text);
	return err;
}

int selector_set(struct monitor *m, const struct selection *s, const char *by, char why[SELECTION_WHY])
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);
	struct config *c;
	int err;

	if (m->config->mode == SAMPLER_NONE)
		return selector_refuse(why, -EINVAL, "this otprofd has no sampler (mode = none)");
	if (!m->sampler.sampling || m->phase != PHASE_RUN)
		return selector_refuse(why, -EAGAIN, "otprofd is starting or stopping: ask again");
	if (s->hz && m->sampler.layout.fixed_rate)
		return selector_refuse(why, -EINVAL, "this sampler cannot change its rate while it runs");
	err = config_select(selector_base(m), s, why, &c);
	if (err)
		return err == -ENOMEM ? selector_refuse(why, -EAGAIN, "there is no memory") : err;
	config_deselect(c);
	m->selector.next = (struct selection_shown){.what = *s, .since_ns = now, .until_ns = now + s->seconds * NSEC_PER_SEC};
	snprintf(m->selector.next.by, sizeof(m->selector.next.by), "%s", by);
	m->selector.wanted = true;
	m->selector.config = config_deselect(m->selector.config);
	return 0;
}

void selector_end(struct monitor *m, const char *by)
{
	if (!selector_shown(m)->since_ns)
		return;
	m->selector.next = (struct selection_shown){0};
	snprintf(m->selector.next.by, sizeof(m->selector.next.by), "%s", by);
	m->selector.wanted = true;
	m->selector.config = config_deselect(m->selector.config);
}

/* --- putting it in force --- */

static void selector_put(struct monitor *m)
{
	struct selector *s = &m->selector;
	struct config *before = m->config, *base = selector_base(m), *next = steal_ptr(&s->config);

	s->wanted = false;
	s->shown = s->next;
	s->base = next ? base : NULL;
	s->until_ns = next ? clock_now_ns() + s->next.what.seconds * NSEC_PER_SEC : UINT64_MAX;
	reload_select(m, next ? next : base);
	if (before != base)
		config_deselect(before);
	if (next)
		selector_log(m);
	else
		log_notice("selection: it has ended (%s): the configuration alone selects again", s->shown.by);
	monitor_notify_status(m);
	hub_link_tell(m, NULL);
}

/* 0: it can be put in force; -EAGAIN: names of containers are being resolved; else it was dropped. */
static int selector_prepare(struct monitor *m, uint64_t now)
{
	struct selector *s = &m->selector;
	char why[SELECTION_WHY] = "out of memory";
	int err = 0;

	if (!s->next.since_ns)
		return 0;
	if (!s->config) {
		err = config_select(selector_base(m), &s->next.what, why, &s->config);
		if (!err && targets_want_names(s->config))
			target_names_want_all(&m->targets.names);
		s->names_deadline_ns = now + NAMES_NS;
	}
	if (err) {
		/* It was good when it was asked for: the configuration has changed since. */
		log_warn("selection: it is not put in force: %s", why);
		s->wanted = false;
		return err;
	}
	return target_names_settled(&m->targets.names) || now >= s->names_deadline_ns ? 0 : -EAGAIN;
}

void selector_run(struct monitor *m, uint64_t now)
{
	struct selector *s = &m->selector;

	if (!m->sampler.sampling || m->phase != PHASE_RUN)
		return;
	if (s->base && now >= s->until_ns && !s->wanted)
		selector_end(m, "its time is over");
	if (s->wanted && !reload_is_busy(m) && !selector_prepare(m, now))
		selector_put(m);
}

/* --- reloads --- */

void selector_rebase(struct monitor *m, struct config *c)
{
	struct selector *s = &m->selector;
	char why[SELECTION_WHY] = "out of memory";

	if (!s->base) {
		m->config = c;
		return;
	}
	if (!config_select(c, &s->shown.what, why, &m->config)) {
		s->base = c;
		return;
	}
	log_warn("selection: it ends, because the new configuration does not allow it: %s", why);
	s->base = NULL;
	s->shown = (struct selection_shown){0};
	m->config = c;
}

void selector_done(struct monitor *m)
{
	struct selector *s = &m->selector;

	config_deselect(s->config);
	if (!s->base)
		return;
	config_deselect(m->config);
	m->config = s->base;
	s->base = NULL;
}
