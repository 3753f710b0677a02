// SPDX-License-Identifier: Apache-2.0
/*
 * The messages between the engine and its decoder processes. A decoder may be
 * taken over by the memory that it reads: what it sends is checked, and a
 * descriptor is not accepted.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/decoders_state.h"

#define ATTACH_NS     (10 * NSEC_PER_SEC) /* its start, and an opener, included; it yields to a busy host */
#define FUNCTION_NS   (2 * NSEC_PER_SEC)
#define MESSAGES_TURN 256

/* --- processes --- */

static void decoder_take_place(struct decoder *d)
{
	struct decoders *ds = d->ds;

	for (int i = 0; i < DECODERS_LIVE; i++)
		if (!ds->process[i]) {
			ds->process[i] = d;
			ds->live++;
			return;
		}
}

static void decoder_leave_place(struct decoder *d)
{
	struct decoders *ds = d->ds;

	for (int i = 0; i < DECODERS_LIVE; i++)
		if (ds->process[i] == d) {
			ds->process[i] = NULL;
			ds->live--;
		}
}

void decoder_close(struct decoder *d)
{
	struct decoders *ds = d->ds;

	if (d->state == DECODER_AWAY)
		return;
	decoder_leave_place(d);
	closep(&d->sock);
	d->sock = -1;
	if (d->id && ds->cfg.end)
		ds->cfg.end(ds->cfg.ctx, d->id);
	d->id = 0;
	d->sent = 0;
	d->state = DECODER_AWAY;
	d->left_ns = clock_now_ns();
	buf_reset(&d->reads);
	ds->next_ns = 0;
}

static struct binary *decoder_file(const struct decoder *d)
{
	return d->own ? d->own : d->target.binary;
}

static int decoder_send_attach(struct decoder *d)
{
	struct decode_attach a = {.reads = d->ds->cfg.capture != NULL, .thread = d->target.thread,
				  .seen = d->target.seen};
	int fd = binary_fd(decoder_file(d));

	/* A capture needs all that a question read. */
	a.found = d->attached && !a.reads && decode_runtime(d->as.runtime)->found_lasts;
	if (a.found)
		a.as = d->as;
	return fd < 0 ? -ENOEXEC : ipc_send(d->sock, IPC_ATTACH, 0, &a, sizeof(a), &fd, 1);
}

static int decoder_watch(struct decoder *d)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = d->sock};

	return epoll_ctl(d->ds->cfg.epoll, EPOLL_CTL_ADD, d->sock, &e) < 0 ? -errno : 0;
}

static int decoder_begin(struct decoder *d, int fd, const void *data, size_t len)
{
	struct decode_opened opened;
	int err;

	if (fd < 0 || len != sizeof(opened)) {
		closep(&fd);
		return -EBADMSG;
	}
	memcpy(&opened, data, sizeof(opened));
	d->sock = fd;
	d->id = opened.id;
	d->ds->figures.started++;
	err = decoder_watch(d);
	return err ? err : decoder_send_attach(d);
}

static void decoder_on_opened(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct decoder *d = ctx;
	uint64_t now = clock_now_ns();

	if (!err && d->ds->cfg.epoll < 0) {
		decoder_replay_attach(d, data);
		return;
	}
	if (!err)
		err = decoder_begin(d, fd, data, len);
	else
		closep(&fd);
	if (err) {
		decoder_failed(d, err, "", now);
		return;
	}
	d->state = DECODER_ATTACHING;
	d->deadline_ns = now + ATTACH_NS;
	d->ds->next_ns = 0;
}

void decoder_open(struct decoder *d, uint64_t now)
{
	const struct decoders_target *t = &d->target;
	const struct host_request req = {.kind = HOST_OPEN_DECODER, .pid = t->pid, .pid_start_ns = t->start_ns,
					 .elf_fd = binary_fd(decoder_file(d)), .ticket = &decoder_file(d)->ticket,
					 .start = t->start, .end = t->end, .group = t->group};
	int err;

	d->state = DECODER_OPENING;
	d->opened_ns = now;
	decoder_take_place(d);
	err = host_ask(d->ds->cfg.host, &req, decoder_on_opened, d);
	if (err)
		decoder_failed(d, err, "", now);
}

/* --- the process' own file --- */

/*
 * The kernel reports what is mapped by path and build-id, so one file serves all processes of a container that map such
 * a one. But memory is had for the very file that its process maps: one below another root, or one replaced since.
 */
static bool decoder_is_same_build(const struct binary *a, const struct binary *b)
{
	return a->build_id_len && a->build_id_len == b->build_id_len && !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static int decoder_take_own(struct decoder *d, int fd, const void *data, size_t len)
{
	struct binary *b;
	int err = fd < 0 ? -EBADMSG : binary_open(fd, d->target.binary->path->s, &b);

	if (err)
		return err;
	if (!decoder_is_same_build(b, d->target.binary)) {
		binary_put(b);
		return -ESTALE;
	}
	if (len == sizeof(b->ticket))
		memcpy(&b->ticket, data, sizeof(b->ticket));
	d->own = b;
	return 0;
}

static void decoder_on_own(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct decoder *d = ctx;
	uint64_t now = clock_now_ns();

	if (!err)
		err = decoder_take_own(d, fd, data, len);
	else
		closep(&fd);
	if (err) {
		/* Not as if the runtime had been sought there. */
		decoder_failed(d, decoder_is_final(err) ? -ESTALE : err, "", now);
		return;
	}
	decoder_close(d);
	d->retry_ns = now;
}

static void decoder_open_own(struct decoder *d, uint64_t now)
{
	const struct decoders_target *t = &d->target;
	const struct host_request req = {.kind = HOST_OPEN_MAPPED, .pid = t->pid, .pid_start_ns = t->start_ns,
					 .start = t->start, .end = t->end, .group = t->group,
					 .path = t->binary->path->s};
	int err;

	decoder_close(d);
	d->state = DECODER_OPENING;
	decoder_take_place(d);
	err = host_ask(d->ds->cfg.host, &req, decoder_on_own, d);
	if (err)
		decoder_failed(d, err, "", now);
}

/* --- questions --- */

void decoder_send_batch(struct decoder *d, uint64_t now)
{
	uint32_t n = MIN(d->count - d->first, (uint32_t)DECODE_FRAMES);
	size_t len = decode_batch_pack(d->frames + d->first, n, d->ds->out);
	int err = ipc_send(d->sock, IPC_DECODE, ++d->batches, d->ds->out, len, NULL, 0);

	d->state = DECODER_ASKED;
	d->sent = n;
	d->answered = 0;
	d->deadline_ns = now + FUNCTION_NS;
	d->ds->next_ns = 0;
	if (err) {
		/* It has ended between two questions: no frame is to blame. */
		decoder_failed(d, err, "", now);
	}
}

/* --- answers: false: the decoder was dropped, or has no process any more --- */

/* A process that has ended told nothing: a replay has its last answer. */
static void decoder_keep_reads(struct decoder *d, const struct runtime_frame *frame, int err, uint64_t bias)
{
	if (d->ds->cfg.capture && !d->reads.failed && !(frame && err == -ESRCH))
		capture_decoded(d->ds->cfg.capture, &d->target, frame, err, bias, d->reads.data, d->reads.len);
	buf_reset(&d->reads);
}

static bool decoder_take_attached(struct decoder *d, uint64_t now)
{
	struct decode_attached a;

	if (d->state != DECODER_ATTACHING || decode_attached_unpack(&d->ds->message, &a)) {
		decoder_broke(d, -EBADMSG, now);
		return false;
	}
	if (a.err == -ESTALE && !d->own) {
		decoder_open_own(d, now);
		return false;
	}
	decoder_keep_reads(d, NULL, a.err, a.bias);
	if (a.err) {
		decoder_failed(d, a.err, a.why, now);
		return false;
	}
	d->state = DECODER_READY;
	d->used_ns = now;
	d->failures = 0;
	d->ds->next_ns = 0;
	d->as = a.attached;
	if (!d->reported && !decoder_report(d, 0, &a.attached, ""))
		return false;
	if (d->state == DECODER_READY && d->count)
		decoder_send_batch(d, now);
	return d->state != DECODER_AWAY;
}

/* Into function or code of struct decoders, as the first frame that waits was a question for one or the other. */
static int decoder_unpack_answer(struct decoder *d, int *ret_err)
{
	const struct ipc_message *m = &d->ds->message;
	const struct runtime_frame *asked;

	if (d->state != DECODER_ASKED || m->head.tag != d->batches || d->first >= d->count)
		return -EBADMSG;
	asked = &d->frames[d->first];
	if (!(asked->flags & RUNTIME_CODE) != (m->head.type == IPC_FUNCTION))
		return -EBADMSG;
	if (m->head.type == IPC_CODE)
		return decode_code_unpack(m, d->answered, asked->key, ret_err, &d->ds->code);
	return decode_function_unpack(m, d->answered, ret_err, &d->ds->function);
}

static bool decoder_take_answer(struct decoder *d, uint64_t now)
{
	int err;

	if (decoder_unpack_answer(d, &err)) {
		decoder_broke(d, -EBADMSG, now);
		return false;
	}
	decoder_keep_reads(d, &d->frames[d->first], err, 0);
	d->answered++;
	d->used_ns = now;
	d->deadline_ns = now + FUNCTION_NS;
	d->pause_ns = 0;
	d->failures = 0;
	if (d->sent == 1) {
		d->state = DECODER_READY;
		d->ds->next_ns = 0;
	}
	if (!decoder_answer(d, err))
		return false;
	if (d->state == DECODER_READY && d->count && !decoder_is_old(d, now))
		decoder_send_batch(d, now);
	return d->state != DECODER_AWAY;
}

/* Bounded: what exceeds the room makes the question's reads incomplete, and they are left out of the capture. */
static bool decoder_take_read(struct decoder *d, uint64_t now)
{
	const uint8_t *bytes;
	struct decode_read r;

	if (!d->ds->cfg.capture || (d->state != DECODER_ATTACHING && d->state != DECODER_ASKED) ||
	    decode_read_unpack(&d->ds->message, &r, &bytes)) {
		decoder_broke(d, -EBADMSG, now);
		return false;
	}
	if (r.source == DECODE_FILE)
		capture_file_page(d->ds->cfg.capture, d->target.binary, r.addr, bytes, r.len);
	else
		capture_add_read(&d->reads, r.addr | (r.source == DECODE_BESIDE ? CAPTURE_BESIDE : 0), bytes, r.len);
	return true;
}

static bool decoder_take(struct decoder *d, uint64_t now)
{
	switch (d->ds->message.head.type) {
	case IPC_ATTACHED:
		return decoder_take_attached(d, now);
	case IPC_FUNCTION:
	case IPC_CODE:
		return decoder_take_answer(d, now);
	case IPC_READ:
		return decoder_take_read(d, now);
	default:
		decoder_broke(d, -EBADMSG, now);
		return false;
	}
}

/* The end of one that was asked nothing is no failure: its time was over. */
static void decoder_ended(struct decoder *d, int err, uint64_t now)
{
	if (d->state == DECODER_READY)
		decoder_close(d);
	else
		decoder_broke(d, err, now);
}

static void decoder_read(struct decoder *d, uint64_t now)
{
	struct decoders *ds = d->ds;
	int r = 1;

	for (int i = 0; i < MESSAGES_TURN && d->sock >= 0; i++) {
		r = ipc_receive_plain(d->sock, &ds->message);
		if (r != 1)
			break;
		if (!decoder_take(d, now))
			return;
	}
	if (r != 1 && r != -EAGAIN)
		decoder_ended(d, r < 0 ? r : -EIO, now);
}

/* By place: a call may drop any decoder. */
void decoders_read(struct decoders *ds)
{
	uint64_t now = clock_now_ns();

	for (int i = 0; i < DECODERS_LIVE; i++)
		if (ds->process[i] && ds->process[i]->sock >= 0)
			decoder_read(ds->process[i], now);
}
