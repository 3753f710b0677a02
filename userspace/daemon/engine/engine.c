// SPDX-License-Identifier: Apache-2.0
/*
 * The engine's life: start, sandbox, and the loop that drains ring and
 * side-band, answers messages and ends intervals.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/secret.h"
#include "daemon/engine/engine_state.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"

/* The ring is drained this often; faster, down to 50 ms, while it fills. */
#define DRAIN_SLOW_NS (250 * NSEC_PER_MSEC)
#define DRAIN_WATCH_NS (100 * NSEC_PER_MSEC) /* where a selection waits for side-band records */
#define BEAT_NS       NSEC_PER_SEC
#define BEATS_SENT    2 /* only every second drain: each beat wakes the monitor */
#define RATE_TURN_MS	20
/* How long a stop waits for answers to open questions, and for net to take the last requests. */
#define STOP_ANSWERS_NS (NSEC_PER_SEC)
#define STOP_NET_NS     (5 * NSEC_PER_SEC)

_Static_assert(RUNTIME_LINE_FILES_NR <= LEDGER_LINE_FILES_MAX, "each has its place");

static void engine_count_decoders(struct engine *e)
{
	struct decoders_figures f;

	if (!e->decoders) /* the start has not come that far */
		return;
	decoders_count(e->decoders, &f);
	e->ledger.decoders_live = f.live;
	e->ledger.decoders_waiting = f.waiting;
	e->ledger.decoders_started = f.started;
	e->ledger.decoders_late = f.late;
	e->ledger.decoders_died = f.died;
	e->ledger.functions_decoded = f.functions;
	e->ledger.functions_failed = f.failed;
	memcpy(e->ledger.line_files, f.line_files, sizeof(f.line_files));
}

void engine_publish(void *ctx)
{
	struct engine *e = ctx;

	engine_count_decoders(e);
	ledger_publish(e->page, &e->ledger);
}

/* --- intervals --- */

/* Modules and BPF programs that were loaded later have names only after another reading. */
static void engine_follow_kernel(struct engine *e, uint64_t now)
{
	uint64_t since = now - e->kallsyms_ns;
	struct kernel_symbols *k;

	if (e->kallsyms_fd < 0 || since < e->kallsyms_wait_ns || !pipeline_kernel_unsure(e->pipeline))
		return;
	if (kernel_symbols_load(e->kallsyms_fd, &k) == 0)
		pipeline_kernel(e->pipeline, k);
	/* An address that is unresolved again so soon is probably one that no reading resolves. */
	e->kallsyms_wait_ns = since > 2 * e->kallsyms_wait_ns ? KERNEL_FIRST_NS :
								MIN(2 * e->kallsyms_wait_ns, KERNEL_LONGEST_NS);
	e->kallsyms_ns = now;
}

/*
 * At high rates a quarter of a second holds too many samples to wait for the plans that follow from the first of
 * them.
 */
static uint64_t engine_slow_drain(const struct engine *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t fill = e->origins.slot[0].period * DRAIN_ITEMS / (uint64_t)MAX(cpus, 1);

	return MAX(MIN(fill, e->watch ? DRAIN_WATCH_NS : DRAIN_SLOW_NS), DRAIN_FAST_NS);
}

void engine_flush(struct engine *e, uint64_t now)
{
	uint64_t offset = clock_unix_offset_ns();
	uint64_t start = clock_join_ns(e->interval_start_ns + offset, e->last_end_unix_ns);
	uint64_t end = MAX(now + offset, start + 1);

	engine_follow_kernel(e, now);
	pipeline_flush(e->pipeline, start, end);
	if (e->capture)
		capture_flush(e->capture, now);
	engine_publish(e);
	e->interval_start_ns = now;
	e->last_end_unix_ns = end;
	e->interval_end_ns += e->config->interval_ns;
	if (e->interval_end_ns <= now)
		e->interval_end_ns = now + e->config->interval_ns;
}

/*
 * A change of rate: sampling is stopped, and its last samples lie below rate.pos. They wait a short time for their
 * files, then their profile ends; later samples have the new period.
 */
static void engine_change_rate(struct engine *e, uint64_t now, bool at_once)
{
	bool late = at_once || now >= e->rate_deadline_ns;

	if (!e->rate.origins.count)
		return;
	if (!late && ring_consumer(&e->ring) < e->rate.pos)
		e->next_drain_ns = 0;
	if (!late && (ring_consumer(&e->ring) < e->rate.pos || pipeline_parked(e->pipeline)))
		return;
	pipeline_retry(e->pipeline, now, true);
	pipeline_end_wait(e->pipeline);
	engine_flush(e, now);
	e->interval_end_ns = now + e->config->interval_ns;
	e->origins = e->rate.origins;
	pipeline_set_origins(e->pipeline, &e->origins);
	if (e->capture)
		capture_origins(e->capture, &e->origins);
	e->rate.origins.count = 0;
	e->drain_slow_ns = engine_slow_drain(e);
	e->drain_every_ns = MIN(e->drain_every_ns, e->drain_slow_ns);
	ipc_send(e->sock, IPC_RATE, 0, &e->rate.id, sizeof(e->rate.id), NULL, 0);
}

static void engine_beat(struct engine *e, uint64_t now)
{
	pipeline_tick(e->pipeline, now);
	pipeline_retry(e->pipeline, now, false);
	if (e->scans)
		pipeline_scan_some(e->pipeline); /* if the scan fails now, the next beat retries it */
	engine_publish(e);
	if (e->beats++ % BEATS_SENT == 0)
		ipc_send(e->sock, IPC_BEAT, 0, &e->beats, sizeof(e->beats), NULL, 0);
	e->next_beat_ns = now + BEAT_NS;
}

static void engine_run_timers(struct engine *e)
{
	uint64_t now = clock_now_ns();

	if (now >= e->next_drain_ns) {
		engine_drain(e);
		e->next_drain_ns = now + e->drain_every_ns;
	}
	pipeline_turn(e->pipeline, now);
	engine_change_rate(e, clock_now_ns(), false); /* after a drain of a full ring, time has passed */
	if (now >= e->interval_end_ns)
		engine_flush(e, now);
	if (now >= e->next_beat_ns)
		engine_beat(e, now);
	decoders_run(e->decoders, clock_now_ns());
	host_live_pump(e->host);
	outbox_pump(&e->outbox);
}

/* 0, or negative when the monitor is gone or breaks the rules. */
static int engine_read_monitor(struct engine *e)
{
	int r;

	while ((r = ipc_receive(e->sock, &e->message)) == 1) {
		r = engine_take(e, &e->message);
		ipc_close_fds(&e->message);
		if (r < 0)
			return r;
	}
	if (r == 0)
		return -EPIPE;
	return r == -EAGAIN ? 0 : r;
}

static void engine_read_net(struct engine *e)
{
	uint64_t id;
	int r;

	while ((r = ipc_receive(e->outbox.sock, &e->message)) == 1) {
		if (e->message.head.type == IPC_RECEIVED && ipc_fits(&e->message, sizeof(id), 0)) {
			memcpy(&id, e->message.data, sizeof(id));
			outbox_received(&e->outbox, id);
		}
		ipc_close_fds(&e->message);
	}
	/* net is gone: nothing is sent until the monitor sends another socket. */
	if (r != -EAGAIN)
		outbox_peer(&e->outbox, -1);
}

/* The beat waits for a drain, so that both take one wake-up. */
static int engine_timeout_ms(const struct engine *e)
{
	uint64_t now = clock_now_ns(), next = MIN(e->next_drain_ns, e->interval_end_ns);

	next = MIN(next, decoders_next_ns(e->decoders));
	if (e->rate.origins.count)
		next = MIN(next, now + RATE_TURN_MS * NSEC_PER_MSEC);
	return next <= now ? 0 : (int)((next - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

static int engine_wait_and_read(struct engine *e, int timeout)
{
	struct epoll_event events[4 + DECODERS_LIVE];
	int n = epoll_wait(e->epoll, events, ARRAY_SIZE(events), timeout);
	bool decoders = false;

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == RING_FILLS)
			e->next_drain_ns = 0;
		else if (events[i].data.fd == e->outbox.sock)
			engine_read_net(e);
		else
			decoders |= events[i].data.fd != e->sock;
	}
	if (decoders)
		decoders_read(e->decoders);
	return engine_read_monitor(e);
}

/* --- start and end --- */

static int engine_watch(struct engine *e)
{
	struct epoll_event monitor = {.events = EPOLLIN, .data.fd = e->sock};

	return epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->sock, &monitor) < 0 ? -errno : 0;
}

static int engine_receive_start(struct engine *e)
{
	struct pollfd p = {.fd = e->sock, .events = POLLIN};
	int r;

	while (!e->started && !e->stopping) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		r = engine_read_monitor(e);
		if (r < 0)
			return r;
	}
	if (!e->config || !e->page || !e->ring.data)
		return -EBADMSG;
	return e->pipeline ? 0 : engine_make_pipeline(e);
}

static void engine_begin(struct engine *e)
{
	uint64_t now = clock_now_ns();

	e->drain_slow_ns = engine_slow_drain(e);
	e->drain_every_ns = e->drain_slow_ns;
	e->next_drain_ns = now + e->drain_every_ns;
	e->next_beat_ns = now;
	e->interval_end_ns = now + e->config->interval_ns;
	e->interval_start_ns = now;
	e->last_end_unix_ns = now + clock_unix_offset_ns();
	engine_skip_fatal_batch(e);
	if (pipeline_scan(e->pipeline) < 0)
		log_warn("the scan of running processes could not be requested: they are looked up one by one");
}

/* Drains the ring, resolves or gives up every sample, and hands the last profile to net. */
static void engine_finish(struct engine *e)
{
	uint64_t deadline = clock_now_ns() + STOP_ANSWERS_NS;

	engine_drain(e);
	engine_drain(e); /* a sample that waited for chunks */
	engine_change_rate(e, clock_now_ns(), true);
	engine_drain(e);
	while (pipeline_parked(e->pipeline) && clock_now_ns() < deadline && engine_wait_and_read(e, 20) == 0)
		pipeline_retry(e->pipeline, clock_now_ns(), false);
	pipeline_retry(e->pipeline, clock_now_ns(), true);
	engine_flush(e, clock_now_ns());
	pipeline_tick(e->pipeline, clock_now_ns());
	engine_publish(e);
	deadline = clock_now_ns() + STOP_NET_NS;
	while (!outbox_empty(&e->outbox) && clock_now_ns() < deadline && engine_wait_and_read(e, 50) == 0)
		outbox_pump(&e->outbox);
}

static void engine_done(struct engine *e)
{
	pipeline_free(e->pipeline);
	decoders_free(e->decoders);
	host_live_free(e->host);
	binary_set_page_hook(NULL, NULL);
	capture_free(e->capture);
	outbox_done(&e->outbox);
	hub_feed_done(&e->hub);
	batch_done(&e->batch);
	sideband_reader_free(e->sideband);
	if (e->ring.data)
		ring_unmap(&e->ring);
	config_free(e->config);
	closep(&e->kallsyms_fd);
	free(e);
}

static int engine_run(struct engine *e)
{
	int r = engine_receive_start(e);

	if (r == 0)
		r = engine_watch(e);
	if (r == 0)
		r = sandbox_engine(e->config, e->capture);
	if (r < 0) {
		log_error("the engine cannot start: %s", strerror(-r));
		return 1;
	}
	engine_begin(e);
	ipc_send(e->sock, IPC_READY, 0, NULL, 0, NULL, 0);
	while (!e->stopping) {
		if (engine_wait_and_read(e, engine_timeout_ms(e)) < 0)
			return 1; /* the monitor is gone: the engine exits */
		engine_run_timers(e);
	}
	engine_finish(e);
	return 0;
}

int engine_main(int sock)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	log_init("engine", LOG_LEVEL_INFO);
	if (!e || sandbox_begin() < 0) {
		free(e);
		return 1;
	}
	hash_seed_init();
	batch_init(&e->batch);
	if (secret_hide_stack() < 0)
		log_warn("the engine's stack would be part of a core dump");
	e->sock = sock;
	e->kallsyms_fd = -1;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	hub_feed_init(&e->hub);
	outbox_init(&e->outbox, &e->ledger, engine_publish, e);
	if (e->epoll < 0 || sideband_reader_new(&e->sideband) < 0) {
		free(e);
		return 1;
	}
	r = engine_run(e);
	engine_done(e);
	return r;
}
