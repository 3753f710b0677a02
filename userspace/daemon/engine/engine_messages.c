// SPDX-License-Identifier: Apache-2.0
/*
 * The monitor's messages, at the start and later.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/engine/engine_state.h"
#include "daemon/engine/explain.h"
#include "daemon/handover.h"

/* How long samples of the old rate may wait for their files before the new one begins. */
#define RATE_ANSWERS_NS (500 * NSEC_PER_MSEC)

/* Checked, although the monitor is trusted: they index the profile's table of types. */
static bool engine_origins_are_sound(const struct origins *o)
{
	if (!o->count || o->count > OTP_ORIGINS_MAX || !o->slot[0].period)
		return false;
	for (uint32_t i = 0; i < o->count; i++)
		if (!origin_types(o->slot[i].origin))
			return false;
	return true;
}

static int engine_take_config(struct engine *e, struct ipc_message *m)
{
	return e->started ? 0 : handover_begin(m, "engine", &e->config);
}

/*
 * By the ring's descriptor its consumer page could be mapped writable. It is closed with the message, before anything
 * hostile is read, and what it stands for stays: the mapping, and its place in epoll, which ends only when the monitor
 * closes the ring too. Edge-triggered: the ring is "readable" as soon as it holds a record, but wakes only when the
 * sampler requests it.
 */
static int engine_take_ring(struct engine *e, struct ipc_message *m)
{
	struct epoll_event fills = {.events = EPOLLIN | EPOLLET, .data.fd = RING_FILLS};
	const struct ipc_ring *info = (const void *)m->data;
	const bool file = ipc_nr_fds(m) == 2;
	int r;

	if (m->head.len != sizeof(*info) || m->fds[0] < 0 || !engine_origins_are_sound(&info->origins))
		return -EBADMSG;
	e->position = info->pos;
	r = (file ? ring_view_file : ring_view)(&e->ring, m->fds[0], info->ring_bytes, &e->position);
	if (r < 0)
		return r;
	if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, m->fds[file ? 1 : 0], &fills) < 0)
		return -errno;
	e->scans = info->flags & IPC_RING_SCAN;
	e->origins = info->origins;
	return 0;
}

static int engine_take_sideband(struct engine *e, struct ipc_message *m)
{
	const struct ipc_sideband *info = (const void *)m->data;

	if (!ipc_fits(m, sizeof(*info), 1))
		return -EBADMSG;
	return sideband_reader_add(e->sideband, ipc_take_fd(m, 0), info->data_bytes);
}

static int engine_take_ledger(struct engine *e, struct ipc_message *m)
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

static int engine_take_rate(struct engine *e, struct ipc_message *m)
{
	struct ipc_rate rate;

	if (!ipc_fits(m, sizeof(rate), 0))
		return -EBADMSG;
	memcpy(&rate, m->data, sizeof(rate));
	if (!engine_origins_are_sound(&rate.origins))
		return -EBADMSG;
	e->rate = rate;
	e->rate_deadline_ns = clock_now_ns() + RATE_ANSWERS_NS;
	e->next_drain_ns = 0;
	return 0;
}

static int engine_take_limits(struct engine *e, struct ipc_message *m)
{
	const struct ipc_limits *l = (const void *)m->data;

	if (!ipc_fits(m, sizeof(*l), 0))
		return -EBADMSG;
	if (e->pipeline)
		pipeline_limit(e->pipeline, l->cache_bytes, l->stack_max_bytes);
	return 0;
}

static int engine_take_debuginfod(struct engine *e, const struct ipc_message *m)
{
	struct ipc_debuginfod d;

	if (!ipc_fits(m, sizeof(d), 0))
		return -EBADMSG;
	memcpy(&d, m->data, sizeof(d));
	if (e->pipeline)
		pipeline_debuginfod(e->pipeline, d.all ? NULL : (const uint8_t *)d.content, d.state, d.state == FETCH_FETCHED);
	return 0;
}

/* If the answer cannot be sent, the client's deadline ends the question. */
static int engine_answer_explain(struct engine *e, const struct ipc_message *m)
{
	_cleanup_(buf_done) struct buf text;
	uint32_t pid;

	if (!ipc_fits(m, sizeof(pid), 1))
		return -EBADMSG;
	memcpy(&pid, m->data, sizeof(pid));
	buf_init(&text, IPC_EXPLAINED_MAX);
	if (e->pipeline)
		pipeline_explain(e->pipeline, pid, &text);
	if (text.failed)
		buf_reset(&text);
	if (file_write(m->fds[0], text.data, text.len) == 0)
		ipc_send(e->sock, IPC_EXPLAINED, m->head.tag, NULL, 0, NULL, 0);
	return 0;
}

/*
 * Ends the interval, so that a profile is of one configuration. Samples that wait for names have the old attributes,
 * so they are part of it.
 */
static int engine_apply_config(struct engine *e, struct config *c)
{
	struct config *before = e->config;
	uint64_t now = clock_now_ns();
	int r = 0;

	if (e->pipeline && c->sample_attributes != before->sample_attributes)
		pipeline_end_wait(e->pipeline);
	if (e->started)
		engine_flush(e, now);
	e->config = c;
	if (e->pipeline)
		r = pipeline_reload(e->pipeline, c);
	config_free(before);
	log_init("engine", c->log_level);
	e->interval_end_ns = MIN(e->interval_end_ns, now + c->interval_ns);
	return r;
}

static int engine_take_reload(struct engine *e, struct ipc_message *m)
{
	struct config *c;
	int r;

	if (!ipc_fits(m, sizeof(struct ipc_reload), 1))
		return -EBADMSG;
	r = handover_config(m, &c);
	if (r == 0)
		r = engine_apply_config(e, c);
	return r < 0 ? r : ipc_send(e->sock, IPC_RELOADED, 0, NULL, 0, NULL, 0);
}

static int engine_take_kallsyms(struct engine *e, struct ipc_message *m)
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

static int engine_take_watch(struct engine *e, struct ipc_message *m)
{
	uint32_t on;

	if (!ipc_fits(m, sizeof(on), 0))
		return -EBADMSG;
	memcpy(&on, m->data, sizeof(on));
	e->watch = on;
	return 0;
}

static int engine_take_capture(struct engine *e, struct ipc_message *m)
{
	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	return capture_new(ipc_take_fd(m, 0), &e->origins, &e->capture);
}

int engine_take(struct engine *e, struct ipc_message *m)
{
	switch (m->head.type) {
	case IPC_CONFIG:
		return engine_take_config(e, m);
	case IPC_RING:
		return engine_take_ring(e, m);
	case IPC_SIDEBAND:
		return engine_take_sideband(e, m);
	case IPC_LEDGER:
		return engine_take_ledger(e, m);
	case IPC_CAPTURE:
		return engine_take_capture(e, m);
	case IPC_RATE:
		return engine_take_rate(e, m);
	case IPC_LIMITS:
		return engine_take_limits(e, m);
	case IPC_KALLSYMS:
		if (!e->pipeline && engine_make_pipeline(e) < 0)
			return -ENOMEM;
		return engine_take_kallsyms(e, m);
	case IPC_PEER:
		if (!ipc_fits(m, 0, 1))
			return -EBADMSG;
		outbox_peer(&e->outbox, ipc_take_fd(m, 0));
		return epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->outbox.sock,
				 &(struct epoll_event){.events = EPOLLIN, .data.fd = e->outbox.sock}) < 0 ? -errno : 0;
	case IPC_HUB:
		if (!ipc_fits(m, 0, 1))
			return -EBADMSG;
		hub_feed_peer(&e->hub, ipc_take_fd(m, 0));
		return 0;
	case IPC_EXPLAIN:
		return engine_answer_explain(e, m);
	case IPC_DEBUGINFOD:
		return engine_take_debuginfod(e, m);
	case IPC_ANSWER:
		host_live_answer(e->host, m);
		return 0;
	case IPC_FILE_WANTED:
		host_live_send_file(e->host, m);
		return 0;
	case IPC_WATCH:
		return engine_take_watch(e, m);
	case IPC_RELOAD:
		return engine_take_reload(e, m);
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
