// SPDX-License-Identifier: Apache-2.0
/*
 * The engine's pipeline: questions are sent to the monitor, requests to net,
 * plans to the sampler.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/engine/engine_state.h"
#include "process/binary.h"

static int engine_on_request(void *ctx, const void *request, size_t len, const struct ledger_counts *samples)
{
	struct engine *e = ctx;

	int r = outbox_add(&e->outbox, request, len, samples);

	if (!r)
		hub_feed_send(&e->hub, outbox_newest(&e->outbox), len);
	return r;
}

static void engine_on_plan(void *ctx, uint32_t pid, const struct otp_plan *plan)
{
	struct engine *e = ctx;
	struct {
		struct ipc_plan head;
		struct otp_plan plan;
	} m = {.head.pid = pid, .plan = *plan};

	/* A plan that does not get through costs some bytes of copying: the next window sends another. */
	ipc_send(e->sock, IPC_PLAN, 0, &m, sizeof(m), NULL, 0);
}

static void engine_on_walk(void *ctx, uint32_t pid, const struct otp_walks *w)
{
	struct engine *e = ctx;
	struct {
		struct ipc_walk head;
		struct otp_walks walks;
	} m = {.head = {.pid = pid, .remove = !w}};

	if (w)
		m.walks = *w;
	ipc_send(e->sock, IPC_WALK, 0, &m, w ? sizeof(m) : sizeof(m.head), NULL, 0);
}

static void engine_on_hint(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
	struct engine *e = ctx;
	struct ipc_hint hint = {.hint = *h};

	memcpy(hint.comm, comm, sizeof(hint.comm));
	ipc_send(e->sock, IPC_HINT, 0, &hint, sizeof(hint), NULL, 0);
}

void engine_send_lives(struct engine *e)
{
	/* Where a message is lost, the monitor's next scan of all processes finds the change. */
	if (e->nr_lives)
		ipc_send(e->sock, IPC_LIFE, 0, e->lives, e->nr_lives * sizeof(e->lives[0]), NULL, 0);
	e->nr_lives = 0;
}

static void engine_on_life(void *ctx, uint32_t pid, uint32_t parent)
{
	struct engine *e = ctx;

	if (!e->watch)
		return;
	if (e->nr_lives == ARRAY_SIZE(e->lives))
		engine_send_lives(e);
	e->lives[e->nr_lives++] = (struct ipc_life){.pid = pid, .parent = parent};
}

/* One line for each version, however many processes run it; programs that make up versions get no more than some. */
static void engine_on_unknown_runtime(void *ctx, uint32_t pid, const char *runtime, const char *why)
{
	uint64_t hash = hash_bytes(why, strlen(why), hash_bytes(runtime, strlen(runtime), hash_seed));
	struct engine *e = ctx;

	for (uint32_t i = 0; i < e->nr_unknown; i++)
		if (e->unknown[i] == hash)
			return;
	if (e->nr_unknown == ARRAY_SIZE(e->unknown))
		return;
	e->unknown[e->nr_unknown++] = hash;
	log_warn("%s in pid %u is not walked, its stacks stay native: %s", runtime, pid, why);
}

static const struct pipeline_ops engine_ops = {
	.request = engine_on_request, .plan = engine_on_plan, .walk = engine_on_walk,
	.hint = engine_on_hint, .life = engine_on_life,
	.unknown_runtime = engine_on_unknown_runtime,
};

static void engine_on_answer(void *ctx, const struct host_request *req, int err, int fd, const void *data, size_t len)
{
	struct engine *e = ctx;

	if (e->capture)
		capture_host_answer(e->capture, req, err, fd, data, len);
}

/* Where it gets lost, the monitor ends the decoder at its deadline. */
static void engine_end_decoder(void *ctx, uint64_t id)
{
	struct engine *e = ctx;

	ipc_send(e->sock, IPC_DECODER_END, 0, &id, sizeof(id), NULL, 0);
}

/* Each takes some 3 ms: 1 % of the machine. */
#define REPEATS_PER_CPU 4

static int engine_make_decoders(struct engine *e)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct decoders_config cfg = {.host = host_live_host(e->host), .capture = e->capture, .epoll = e->epoll,
					    .repeats = REPEATS_PER_CPU * (uint32_t)MAX(cpus, 1),
					    .end = engine_end_decoder, .ctx = e};

	return decoders_new(&cfg, &e->decoders);
}

int engine_make_pipeline(struct engine *e)
{
	struct pipeline_config cfg = {
		.config = e->config,
		.origins = e->origins,
		.ledger = &e->ledger,
		.capture = e->capture,
		.ops = &engine_ops,
		.ctx = e,
	};
	int r = host_live_new(e->sock, engine_on_answer, e, &e->host);

	if (r == 0)
		r = engine_make_decoders(e);
	if (r < 0)
		return r;
	if (e->capture)
		binary_set_page_hook(capture_file_page, e->capture);
	cfg.host = host_live_host(e->host);
	cfg.decoders = e->decoders;
	return pipeline_new(&cfg, &e->pipeline);
}
