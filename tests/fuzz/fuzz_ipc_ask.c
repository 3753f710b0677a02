// SPDX-License-Identifier: Apache-2.0
/*
 * What a broken engine may send to the monitor: raw packets, questions, plans and walks; and a broken decoder, about
 * files.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config *config;
static struct ipc_message message;

/* A plan that gets here is within its bounds and selects nothing. */
static int set_plan(struct source *s, uint32_t pid, const struct otp_plan *p)
{
	if (!pid || (p && (!p->generation || p->stack_bytes > config->stack_max_bytes ||
			   p->select != OTP_SELECT_UNSET || p->any_exec)))
		abort();
	return 0;
}

static int set_walk(struct source *s, uint32_t pid, const struct otp_walks *w)
{
	if (!pid || (w && !otp_walk_sound(w)))
		abort();
	return 0;
}

static const struct source_ops ops = {.name = "fuzz", .set_plan = set_plan, .set_walk = set_walk};
static struct source source = {.ops = &ops};

static int setup(void)
{
	log_init("fuzz", LOG_LEVEL_ERROR);
	return config || !config_parse("fuzz", "", 0, NULL, NULL, &config) ? 0 : -1;
}

static void ask(struct monitor *m, enum asker from)
{
	if (from == ASKER_INDEXER)
		index_jobs_set_root(m, &message);
	asks_add(&m->asks, from, &message);
}

static void handle(struct monitor *m)
{
	if (message.head.type == IPC_PLAN)
		plans_set(m, &message);
	else if (message.head.type == IPC_WALK)
		walks_set(m, &message);
	else if (message.head.type == IPC_BESIDE)
		decoder_jobs_from(m, 0, &message);
	else
		ask(m, message.head.tag & 1 ? ASKER_INDEXER : ASKER_ENGINE);
	asks_run(&m->asks, 1);
	ipc_close_fds(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int engine[2];

	if (!m || setup() || ipc_pair(engine)) {
		free(m);
		return 0;
	}
	m->config = config;
	m->sampler.source = &source;
	workers_init(&m->workers);
	asks_init(&m->asks, &m->workers, targets_names_answered, m);
	m->workers.engine.sock = engine[0];
	m->workers.decoder[0].ready = true;
	m->decoders.slot[0] = (struct decoder_slot){.id = 1, .job = {.pid = 1, .pid_start_ns = 1}};
	if (size && size < 100000 && send(engine[1], data, size, MSG_DONTWAIT) > 0 && ipc_receive(engine[0], &message) == 1)
		handle(m);
	asks_done(&m->asks);
	close(engine[0]);
	close(engine[1]);
	free(m);
	return 0;
}
