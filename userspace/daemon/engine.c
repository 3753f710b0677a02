// SPDX-License-Identifier: Apache-2.0
/*
 * The engine's life: what it was handed, its sandbox, and the loop that drains
 * ring and side-band, answers messages and ends intervals.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "base/log.h"
#include "base/secret.h"
#include "daemon/capture.h"
#include "daemon/explain.h"
#include "daemon/host_live.h"
#include "daemon/outbox.h"
#include "daemon/pipeline.h"
#include "daemon/roles.h"
#include "daemon/sandbox.h"
#include "ring/ring.h"
#include "source/source.h"

/* The ring is looked at this often; faster while it fills, D3's range. */
#define DRAIN_SLOW_NS (250 * NSEC_PER_MSEC)
#define DRAIN_FAST_NS (50 * NSEC_PER_MSEC)
#define DRAIN_WATCH_NS (100 * NSEC_PER_MSEC) /* where a selection waits for what the side-band says */
/* More records than this in one drain are worth an earlier look. */
#define DRAIN_ITEMS 96
#define BEAT_NS       NSEC_PER_SEC
/* Between two readings of the kernel's symbols: each costs some 50 ms, and may be in vain. */
#define KERNEL_FIRST_NS   (30 * NSEC_PER_SEC)
#define KERNEL_LONGEST_NS (600 * NSEC_PER_SEC)
#define BEATS_SENT    2 /* every second one: each wakes the monitor */
/* How long samples of the old rate may wait for their files before the new one begins. */
#define RATE_ANSWERS_NS (500 * NSEC_PER_MSEC)
#define RATE_TURN_MS	20
/* How long a stop waits for answers to open questions, and for net to take the last requests. */
#define STOP_ANSWERS_NS (NSEC_PER_SEC)
#define STOP_NET_NS     (5 * NSEC_PER_SEC)

struct engine {
	int sock; /* to the monitor */
	int epoll;
	struct config *config;
	struct ring ring;
	int ring_fd; /* wakes us: the ring itself, or an eventfd where userspace writes it */
	bool scans;  /* nobody reports process life */
	uint64_t period_ns;
	struct sideband_reader *sideband;
	struct ledger_engine_page *page;
	struct ledger_engine ledger;
	struct outbox outbox;
	struct host_live *host;
	struct pipeline *pipeline;
	struct capture *capture;
	struct batch batch;
	struct ipc_message message;
	int kallsyms_fd; /* gives the symbols of the moment, each time it is read; -1 */
	uint64_t kallsyms_ns, kallsyms_wait_ns;
	const struct otp_rec *waited_for; /* head whose chunks were incomplete at the last drain */
	uint64_t drain_slow_ns, drain_every_ns, next_drain_ns, next_beat_ns;
	uint64_t interval_start_ns, interval_end_ns, last_end_unix_ns;
	uint64_t beats;
	uint64_t bad; /* samples of the batch that break the contract */
	struct ipc_rate rate; /* the change under way; period_ns 0: none */
	uint64_t rate_deadline_ns;
	bool started, stopping;
	bool watch; /* the monitor wants to hear of programs that begin */
	struct ipc_life lives[256];
	uint32_t nr_lives;
};

static void publish(void *ctx)
{
	struct engine *e = ctx;

	ledger_publish(e->page, &e->ledger);
}

/* --- what the monitor hands over --- */

static void config_error(void *ctx, const char *line)
{
	log_error("%s", line);
}

static int take_config(struct engine *e, struct ipc_message *m)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r;

	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	r = ipc_memfd_read(m->fds[0], 1 << 20, &text, &len);
	if (r < 0 || e->started)
		return r;
	e->config = config_free(e->config);
	r = config_parse("configuration", text, len, config_error, NULL, &e->config);
	if (r == 0)
		log_init("engine", e->config->log_level);
	return r;
}

static int take_ring(struct engine *e, struct ipc_message *m)
{
	const struct ipc_ring *info = (const void *)m->data;
	int r;

	if (m->head.len != sizeof(*info) || m->fds[0] < 0)
		return -EBADMSG;
	if (ipc_nr_fds(m) == 4)
		r = ring_map_files(&e->ring, m->fds[2], m->fds[0], info->ring_bytes);
	else
		r = ring_map(&e->ring, m->fds[0], info->ring_bytes);
	if (r < 0)
		return r;
	madvise((void *)(uintptr_t)e->ring.data, e->ring.size * 2, MADV_DONTDUMP);
	e->ring_fd = ipc_take_fd(m, ipc_nr_fds(m) == 4 ? 3 : 0);
	e->scans = info->flags & IPC_RING_SCAN;
	e->period_ns = info->period_ns;
	return 0;
}

static int take_sideband(struct engine *e, struct ipc_message *m)
{
	const struct ipc_sideband *info = (const void *)m->data;

	if (!ipc_fits(m, sizeof(*info), 1))
		return -EBADMSG;
	return sideband_reader_add(e->sideband, ipc_take_fd(m, 0), info->data_bytes);
}

static int take_ledger(struct engine *e, struct ipc_message *m)
{
	void *page;

	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	page = mmap(NULL, sizeof(*e->page), PROT_READ | PROT_WRITE, MAP_SHARED, m->fds[0], 0);
	if (page == MAP_FAILED)
		return -errno;
	e->page = page;
	ledger_read(e->page, &e->ledger);
	return 0;
}

static int take_rate(struct engine *e, struct ipc_message *m)
{
	struct ipc_rate rate;

	if (!ipc_fits(m, sizeof(rate), 0))
		return -EBADMSG;
	memcpy(&rate, m->data, sizeof(rate));
	if (!rate.period_ns)
		return -EBADMSG;
	e->rate = rate;
	e->rate_deadline_ns = clock_now_ns() + RATE_ANSWERS_NS;
	e->next_drain_ns = 0;
	return 0;
}

static int take_limits(struct engine *e, struct ipc_message *m)
{
	const struct ipc_limits *l = (const void *)m->data;

	if (!ipc_fits(m, sizeof(*l), 0))
		return -EBADMSG;
	if (e->pipeline)
		pipeline_limit(e->pipeline, l->cache_bytes, l->stack_max_bytes);
	return 0;
}

static void flush(struct engine *e, uint64_t now);

static int take_debuginfod(struct engine *e, const struct ipc_message *m)
{
	struct ipc_debuginfod d;

	if (!ipc_fits(m, sizeof(d), 0))
		return -EBADMSG;
	memcpy(&d, m->data, sizeof(d));
	if (e->pipeline)
		pipeline_debuginfod(e->pipeline, d.all ? NULL : (const uint8_t *)d.content, d.state, d.state == FETCH_FETCHED);
	return 0;
}

/* One that cannot be sent is asked for in vain: whoever asked gives up after a while. */
static int answer_explain(struct engine *e, const struct ipc_message *m)
{
	_cleanup_(buf_done) struct buf text;
	_cleanup_(closep) int fd = -1;
	uint32_t pid;

	if (!ipc_fits(m, sizeof(pid), 0))
		return -EBADMSG;
	memcpy(&pid, m->data, sizeof(pid));
	buf_init(&text, EXPLAIN_TEXT_MAX);
	if (e->pipeline)
		pipeline_explain(e->pipeline, pid, &text);
	if (text.failed)
		buf_reset(&text);
	fd = ipc_memfd("explain", text.data, text.len);
	if (fd >= 0)
		ipc_send(e->sock, IPC_EXPLAINED, m->head.tag, NULL, 0, &fd, 1);
	return 0;
}

/* The interval ends, so that a profile is of one configuration. */
static int put_in_force(struct engine *e, struct config *c)
{
	struct config *before = e->config;
	uint64_t now = clock_now_ns();
	int r = 0;

	if (e->started)
		flush(e, now);
	e->config = c;
	if (e->pipeline)
		r = pipeline_reload(e->pipeline, c);
	config_free(before);
	log_init("engine", c->log_level);
	e->interval_end_ns = MIN(e->interval_end_ns, now + c->interval_ns);
	return r;
}

static int take_reload(struct engine *e, struct ipc_message *m)
{
	_cleanup_(freep) char *text = NULL;
	struct config *c;
	size_t len;
	int r;

	if (!ipc_fits(m, sizeof(struct ipc_reload), 1))
		return -EBADMSG;
	r = ipc_memfd_read(m->fds[0], 1 << 20, &text, &len);
	if (r == 0)
		r = config_parse("configuration", text, len, config_error, NULL, &c);
	if (r == 0)
		r = put_in_force(e, c);
	return r < 0 ? r : ipc_send(e->sock, IPC_RELOADED, 0, NULL, 0, NULL, 0);
}

static int take_kallsyms(struct engine *e, struct ipc_message *m)
{
	struct kernel_symbols *k = NULL;
	int r;

	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	r = kernel_symbols_load(m->fds[0], &k);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		log_warn("kernel symbols are not readable (%s): the kernel's part of each stack is one frame, [kernel]",
			 strerror(-r));
		return 0;
	}
	pipeline_kernel(e->pipeline, k);
	closep(&e->kallsyms_fd);
	e->kallsyms_fd = ipc_take_fd(m, 0);
	e->kallsyms_ns = clock_now_ns();
	e->kallsyms_wait_ns = KERNEL_FIRST_NS;
	return 0;
}

/* Modules and BPF programs that were loaded since have names only after another reading. */
static void follow_kernel(struct engine *e, uint64_t now)
{
	uint64_t since = now - e->kallsyms_ns;
	struct kernel_symbols *k;

	if (e->kallsyms_fd < 0 || since < e->kallsyms_wait_ns || !pipeline_kernel_unsure(e->pipeline))
		return;
	if (kernel_symbols_load(e->kallsyms_fd, &k) == 0)
		pipeline_kernel(e->pipeline, k);
	/* What is met again as soon as that is, most likely, no code that a reading would name. */
	e->kallsyms_wait_ns = since > 2 * e->kallsyms_wait_ns ? KERNEL_FIRST_NS :
								MIN(2 * e->kallsyms_wait_ns, KERNEL_LONGEST_NS);
	e->kallsyms_ns = now;
}

static int take_watch(struct engine *e, struct ipc_message *m)
{
	uint32_t on;

	if (!ipc_fits(m, sizeof(on), 0))
		return -EBADMSG;
	memcpy(&on, m->data, sizeof(on));
	e->watch = on;
	return 0;
}

static int take_capture(struct engine *e, struct ipc_message *m)
{
	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	return capture_new(ipc_take_fd(m, 0), e->period_ns, &e->capture);
}

/* --- out of the pipeline --- */

static int on_request(void *ctx, const void *request, size_t len, uint64_t samples)
{
	struct engine *e = ctx;

	return outbox_add(&e->outbox, request, len, samples);
}

static void on_plan(void *ctx, uint32_t pid, const struct otp_plan *plan)
{
	struct engine *e = ctx;
	struct {
		struct ipc_plan head;
		struct otp_plan plan;
	} m = {.head.pid = pid, .plan = *plan};

	/* A plan that does not get through costs some bytes of copying: the next window sends another. */
	ipc_send(e->sock, IPC_PLAN, 0, &m, sizeof(m), NULL, 0);
}

static void on_hint(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
	struct engine *e = ctx;
	struct ipc_hint hint = {.hint = *h};

	memcpy(hint.comm, comm, sizeof(hint.comm));
	ipc_send(e->sock, IPC_HINT, 0, &hint, sizeof(hint), NULL, 0);
}

static void send_lives(struct engine *e)
{
	/* Some that do not get through are met at the monitor's next look at all processes. */
	if (e->nr_lives)
		ipc_send(e->sock, IPC_LIFE, 0, e->lives, e->nr_lives * sizeof(e->lives[0]), NULL, 0);
	e->nr_lives = 0;
}

static void on_life(void *ctx, uint32_t pid, uint32_t parent)
{
	struct engine *e = ctx;

	if (!e->watch)
		return;
	if (e->nr_lives == ARRAY_SIZE(e->lives))
		send_lives(e);
	e->lives[e->nr_lives++] = (struct ipc_life){.pid = pid, .parent = parent};
}

static const struct pipeline_ops engine_ops = {
	.request = on_request, .plan = on_plan, .hint = on_hint, .life = on_life};

static void on_answer(void *ctx, const struct host_request *req, int err, int fd, const void *data, size_t len)
{
	struct engine *e = ctx;

	if (e->capture)
		capture_host_answer(e->capture, req, err, fd, data, len);
}

static int make_pipeline(struct engine *e)
{
	struct pipeline_config cfg = {
		.config = e->config,
		.period_ns = e->period_ns,
		.ledger = &e->ledger,
		.capture = e->capture,
		.ops = &engine_ops,
		.ctx = e,
	};
	int r = host_live_new(e->sock, on_answer, e, &e->host);

	if (r < 0)
		return r;
	if (e->capture)
		binary_set_page_hook(capture_file_page, e->capture);
	cfg.host = host_live_host(e->host);
	return pipeline_new(&cfg, &e->pipeline);
}

/* --- ring and side-band --- */

/*
 * A predecessor died inside a batch: what it had read of it is lost, and must
 * not be tried again, or one bad sample would kill every engine after it.
 */
static void skip_fatal_batch(struct engine *e)
{
	uint64_t pos = ring_consumer(&e->ring), end = e->ledger.batch_end;
	const struct otp_rec *rec;

	if (end <= pos || end > ring_producer(&e->ring))
		return;
	while (ring_next(&e->ring, &pos, end, &rec) > 0) {
		if (rec->type != OTP_REC_SAMPLE)
			continue;
		e->ledger.read++;
		e->ledger.lost[OTP_LOSS_ENGINE_DIED]++;
	}
	e->ledger.ring_pos = end;
	e->ledger.batch_end = 0;
	publish(e);
	ring_release(&e->ring, end);
}

/* Collects records up to end; returns where the batch ends. */
static uint64_t collect(struct engine *e, uint64_t end)
{
	uint64_t pos = ring_consumer(&e->ring), before = pos;
	const struct otp_rec *rec;
	int r;

	e->bad = 0;
	while ((r = ring_next(&e->ring, &pos, end, &rec)) > 0) {
		r = batch_add_ring(&e->batch, rec);
		if (r == -ENOMEM)
			return before;
		e->bad += r == -EBADMSG && rec->type == OTP_REC_SAMPLE;
		before = pos;
	}
	return r == -EBADMSG ? end : pos;
}

/* A sample whose last chunks are still to come ends the batch before it, once. */
static uint64_t settle_chunks(struct engine *e, uint64_t end)
{
	const struct otp_rec *head = batch_incomplete(&e->batch);
	uint64_t start = ring_consumer(&e->ring), at;

	if (!head || head == e->waited_for) {
		e->waited_for = NULL;
		return end;
	}
	e->waited_for = head;
	at = (uint64_t)((const uint8_t *)head - e->ring.data) - OTP_RING_HDR;
	at = start + ((at - start) & (e->ring.size - 1));
	batch_reset(&e->batch);
	return collect(e, at);
}

static void on_sideband(void *ctx, const void *record, size_t len)
{
	batch_add_sideband(&((struct engine *)ctx)->batch, record, len);
}

/*
 * Sooner while the ring fills, or while there is so much to learn from: a new
 * program is cut short until the first of its samples has been looked at.
 */
static void pace(struct engine *e, uint64_t used, size_t items)
{
	e->ledger.ring_peak_bytes = MAX(e->ledger.ring_peak_bytes, used);
	if (used > e->ring.size / 8 || items > DRAIN_ITEMS)
		e->drain_every_ns = MAX(e->drain_every_ns / 2, DRAIN_FAST_NS);
	else if (used < e->ring.size / 32 && items < DRAIN_ITEMS / 3)
		e->drain_every_ns = MIN(e->drain_every_ns * 2, e->drain_slow_ns);
}

/* What may be drained now: samples behind a change of rate wait until the profile before it is closed. */
static uint64_t drain_end(const struct engine *e)
{
	uint64_t end = ring_producer(&e->ring);

	return e->rate.period_ns ? MIN(end, MAX(e->rate.pos, ring_consumer(&e->ring))) : end;
}

/* The ring first, then all of the side-band: so every sample's mappings are known (D12). */
static void drain(struct engine *e)
{
	uint64_t end = drain_end(e), now = clock_now_ns(), used = end - ring_consumer(&e->ring);

	batch_reset(&e->batch);
	end = settle_chunks(e, collect(e, end));
	sideband_reader_drain(e->sideband, on_sideband, e);
	pace(e, used, batch_count(&e->batch));
	if (!batch_count(&e->batch) && end == ring_consumer(&e->ring))
		return;
	e->ledger.batch_end = end;
	publish(e);
	if (e->capture)
		capture_batch(e->capture, now);
	batch_sort(&e->batch);
	pipeline_batch(e->pipeline, &e->batch, now);
	send_lives(e);
	/* Not before: as long as the ring holds them, they are counted there. */
	e->ledger.read += e->bad;
	e->ledger.lost[OTP_LOSS_BAD_RECORD] += e->bad;
	e->ledger.ring_pos = end;
	e->ledger.batch_end = 0;
	publish(e);
	ring_release(&e->ring, end);
}

/* --- intervals --- */

/* At high rates a quarter of a second holds more samples than should wait for what the first of them teach. */
static uint64_t slow_drain(const struct engine *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t fill = e->period_ns * DRAIN_ITEMS / (uint64_t)MAX(cpus, 1);

	return MAX(MIN(fill, e->watch ? DRAIN_WATCH_NS : DRAIN_SLOW_NS), DRAIN_FAST_NS);
}

static void flush(struct engine *e, uint64_t now)
{
	uint64_t offset = clock_unix_offset_ns();
	uint64_t start = clock_join_ns(e->interval_start_ns + offset, e->last_end_unix_ns);
	uint64_t end = MAX(now + offset, start + 1);

	follow_kernel(e, now);
	pipeline_flush(e->pipeline, start, end);
	if (e->capture)
		capture_flush(e->capture, now);
	publish(e);
	e->interval_start_ns = now;
	e->last_end_unix_ns = end;
	e->interval_end_ns += e->config->interval_ns;
	if (e->interval_end_ns <= now)
		e->interval_end_ns = now + e->config->interval_ns;
}

/*
 * A change of rate: the sampler stands still, its last samples lie below
 * rate.pos. They are named as far as their files come soon, then their
 * profile ends, and what follows has the new period.
 */
static void change_rate(struct engine *e, uint64_t now, bool at_once)
{
	bool late = at_once || now >= e->rate_deadline_ns;

	if (!e->rate.period_ns)
		return;
	if (!late && ring_consumer(&e->ring) < e->rate.pos)
		e->next_drain_ns = 0;
	if (!late && (ring_consumer(&e->ring) < e->rate.pos || pipeline_parked(e->pipeline)))
		return;
	pipeline_retry(e->pipeline, now, true);
	pipeline_end_wait(e->pipeline);
	flush(e, now);
	e->interval_end_ns = now + e->config->interval_ns;
	e->period_ns = e->rate.period_ns;
	pipeline_set_period(e->pipeline, e->period_ns);
	if (e->capture)
		capture_period(e->capture, e->period_ns);
	e->rate.period_ns = 0;
	e->drain_slow_ns = slow_drain(e);
	e->drain_every_ns = MIN(e->drain_every_ns, e->drain_slow_ns);
	ipc_send(e->sock, IPC_RATE, 0, &e->rate.id, sizeof(e->rate.id), NULL, 0);
}

static void beat(struct engine *e, uint64_t now)
{
	pipeline_tick(e->pipeline, now);
	pipeline_retry(e->pipeline, now, false);
	if (e->scans)
		pipeline_scan_some(e->pipeline); /* again at the next beat where it cannot be asked now */
	publish(e);
	if (e->beats++ % BEATS_SENT == 0)
		ipc_send(e->sock, IPC_BEAT, 0, &e->beats, sizeof(e->beats), NULL, 0);
	e->next_beat_ns = now + BEAT_NS;
}

static void run_timers(struct engine *e)
{
	uint64_t now = clock_now_ns();

	if (now >= e->next_drain_ns) {
		drain(e);
		e->next_drain_ns = now + e->drain_every_ns;
	}
	pipeline_turn(e->pipeline, now);
	change_rate(e, clock_now_ns(), false); /* a full ring took its time */
	if (now >= e->interval_end_ns)
		flush(e, now);
	if (now >= e->next_beat_ns)
		beat(e, now);
	host_live_pump(e->host);
	outbox_pump(&e->outbox);
}

/* --- messages --- */

static int handle_message(struct engine *e, struct ipc_message *m)
{
	switch (m->head.type) {
	case IPC_CONFIG:
		return take_config(e, m);
	case IPC_RING:
		return take_ring(e, m);
	case IPC_SIDEBAND:
		return take_sideband(e, m);
	case IPC_LEDGER:
		return take_ledger(e, m);
	case IPC_CAPTURE:
		return take_capture(e, m);
	case IPC_RATE:
		return take_rate(e, m);
	case IPC_LIMITS:
		return take_limits(e, m);
	case IPC_KALLSYMS:
		if (!e->pipeline && make_pipeline(e) < 0)
			return -ENOMEM;
		return take_kallsyms(e, m);
	case IPC_PEER:
		if (!ipc_fits(m, 0, 1))
			return -EBADMSG;
		outbox_peer(&e->outbox, ipc_take_fd(m, 0));
		return epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->outbox.sock,
				 &(struct epoll_event){.events = EPOLLIN, .data.fd = e->outbox.sock}) < 0 ? -errno : 0;
	case IPC_EXPLAIN:
		return answer_explain(e, m);
	case IPC_DEBUGINFOD:
		return take_debuginfod(e, m);
	case IPC_ANSWER:
		host_live_answer(e->host, m);
		return 0;
	case IPC_WATCH:
		return take_watch(e, m);
	case IPC_RELOAD:
		return take_reload(e, m);
	case IPC_START:
		e->started = true;
		return 0;
	case IPC_STOP:
		e->stopping = true;
		return 0;
	default:
		return 0; /* of a newer monitor */
	}
}

/* 0, or negative when the monitor is gone or breaks the rules. */
static int read_monitor(struct engine *e)
{
	int r;

	while ((r = ipc_receive(e->sock, &e->message)) == 1) {
		r = handle_message(e, &e->message);
		ipc_close_fds(&e->message);
		if (r < 0)
			return r;
	}
	if (r == 0)
		return -EPIPE;
	return r == -EAGAIN ? 0 : r;
}

static void read_net(struct engine *e)
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
	/* net is gone: the monitor will give another socket. Until then nothing is sent. */
	if (r != -EAGAIN)
		outbox_peer(&e->outbox, -1);
}

/* The beat waits for a drain: one wake-up for both. */
static int timeout_ms(const struct engine *e)
{
	uint64_t now = clock_now_ns(), next = MIN(e->next_drain_ns, e->interval_end_ns);

	if (e->rate.period_ns)
		next = MIN(next, now + RATE_TURN_MS * NSEC_PER_MSEC);
	return next <= now ? 0 : (int)((next - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

static int wait_and_read(struct engine *e, int timeout)
{
	struct epoll_event events[4];
	int n = epoll_wait(e->epoll, events, ARRAY_SIZE(events), timeout);

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == e->ring_fd)
			e->next_drain_ns = 0; /* the sampler woke us: the ring fills */
		else if (events[i].data.fd == e->outbox.sock)
			read_net(e);
	}
	return read_monitor(e);
}

/* --- start and end --- */

static int watch(struct engine *e)
{
	struct epoll_event monitor = {.events = EPOLLIN, .data.fd = e->sock};
	/* Edge-triggered: the ring is "readable" as soon as it holds anything, but wakes only when told. */
	struct epoll_event ring = {.events = EPOLLIN | EPOLLET, .data.fd = e->ring_fd};

	if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->sock, &monitor) < 0 ||
	    epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->ring_fd, &ring) < 0)
		return -errno;
	return 0;
}

static int receive_start(struct engine *e)
{
	struct pollfd p = {.fd = e->sock, .events = POLLIN};
	int r;

	while (!e->started && !e->stopping) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		r = read_monitor(e);
		if (r < 0)
			return r;
	}
	if (!e->config || !e->page || e->ring_fd < 0)
		return -EBADMSG;
	return e->pipeline ? 0 : make_pipeline(e);
}

static void begin(struct engine *e)
{
	uint64_t now = clock_now_ns();

	e->drain_slow_ns = slow_drain(e);
	e->drain_every_ns = e->drain_slow_ns;
	e->next_drain_ns = now + e->drain_every_ns;
	e->next_beat_ns = now;
	e->interval_end_ns = now + e->config->interval_ns;
	e->interval_start_ns = now;
	e->last_end_unix_ns = now + clock_unix_offset_ns();
	skip_fatal_batch(e);
	if (pipeline_scan(e->pipeline) < 0)
		log_warn("the scan of running processes could not be asked for: they are looked up one by one");
}

/* Ring empty, every sample named or given up, the last profile with net: then the end. */
static void finish(struct engine *e)
{
	uint64_t deadline = clock_now_ns() + STOP_ANSWERS_NS;

	drain(e);
	drain(e); /* a sample whose chunks were awaited */
	change_rate(e, clock_now_ns(), true);
	drain(e);
	while (pipeline_parked(e->pipeline) && clock_now_ns() < deadline && wait_and_read(e, 20) == 0)
		pipeline_retry(e->pipeline, clock_now_ns(), false);
	pipeline_retry(e->pipeline, clock_now_ns(), true);
	flush(e, clock_now_ns());
	pipeline_tick(e->pipeline, clock_now_ns());
	publish(e);
	deadline = clock_now_ns() + STOP_NET_NS;
	while (!outbox_empty(&e->outbox) && clock_now_ns() < deadline && wait_and_read(e, 50) == 0)
		outbox_pump(&e->outbox);
}

static void engine_done(struct engine *e)
{
	pipeline_free(e->pipeline);
	host_live_free(e->host);
	binary_set_page_hook(NULL, NULL);
	capture_free(e->capture);
	outbox_done(&e->outbox);
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
	int r = receive_start(e);

	if (r == 0)
		r = watch(e);
	if (r == 0)
		r = sandbox_engine(e->config);
	if (r < 0) {
		log_error("the engine cannot start: %s", strerror(-r));
		return 1;
	}
	begin(e);
	ipc_send(e->sock, IPC_READY, 0, NULL, 0, NULL, 0);
	while (!e->stopping) {
		if (wait_and_read(e, timeout_ms(e)) < 0)
			return 1; /* the monitor is gone: so is the reason to live */
		run_timers(e);
	}
	finish(e);
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
	e->ring_fd = e->kallsyms_fd = -1;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	outbox_init(&e->outbox, &e->ledger, publish, e);
	if (e->epoll < 0 || sideband_reader_new(&e->sideband) < 0) {
		free(e);
		return 1;
	}
	r = engine_run(e);
	engine_done(e);
	return r;
}
