// SPDX-License-Identifier: Apache-2.0
/*
 * The decoder: the disposable process that reads the memory of one process
 * which runs an interpreter, and finds out what the frames mean that the sampler
 * copied. It has that memory, the runtime's file, portable PDBs beside files that
 * the process has mapped, and two sockets, and no rights.
 * Nobody can be passed the memory: of the calls that send, it may make those only
 * that cannot pass a descriptor.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/disposable/decode_serve.h"
#include "daemon/handover.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"

#define IDLE_MS	   5000 /* without a message; the engine ends a decoder sooner */
#define CACHE_BYTES (1u << 20)

struct decoder {
	int monitor, engine; /* sockets */
	struct config *config;
	struct ticket_file file; /* what the engine has to send */
	struct sandbox_user user;
	bool has_attach, has_memory;
	struct decode_attach attach;
	struct decode_mapping at;
	int memory_err, file_err;
	struct ipc_message message;
	struct decode_serve serve;
};

static int decoder_take_job(void *ctx, struct ipc_message *m)
{
	struct decoder *d = ctx;
	const struct ipc_decoder *job = (const void *)m->data;

	if (m->head.type != IPC_DECODER)
		return 0;
	if (!ipc_fits(m, sizeof(*job), 1) || d->engine >= 0)
		return -EBADMSG;
	d->file = job->file;
	d->user = (struct sandbox_user){job->uid, job->gid};
	d->engine = ipc_take_fd(m, 0);
	return 0;
}

/* The process' memory, from an opener, and where the file is mapped in it; or why not. */
static int decoder_take_memory(struct decoder *d, struct ipc_message *m)
{
	struct {
		struct ipc_answer head;
		struct decode_mapping at;
	} a = {0};

	/* With a tag: a file that is late. */
	if (m->head.type != IPC_ANSWER || m->head.tag)
		return 0;
	if (d->has_memory || m->head.len < sizeof(a.head) || m->head.len > sizeof(a))
		return -EBADMSG;
	memcpy(&a, m->data, m->head.len);
	d->has_memory = true;
	d->memory_err = a.head.err;
	d->at = a.at;
	if (a.head.err)
		return 0;
	d->serve.memory_fd = ipc_take_fd(m, 0);
	return m->head.len == sizeof(a) && d->serve.memory_fd >= 0 ? 0 : -EBADMSG;
}

/* The engine may be taken over: it must not have another file taken for the one that its ticket is for. */
static int decoder_open_file(struct decoder *d, struct ipc_message *m)
{
	int err = ticket_file_check(&d->file, m->fds[0]);

	return err ? err : binary_open(ipc_take_fd(m, 0), "", &d->serve.file.binary);
}

static int decoder_take_attach(struct decoder *d, struct ipc_message *m)
{
	if (m->head.type != IPC_ATTACH || d->has_attach || !ipc_fits(m, sizeof(d->attach), 1))
		return -EBADMSG;
	memcpy(&d->attach, m->data, sizeof(d->attach));
	if (d->attach.seen.nr > RUNTIME_SEEN || (d->attach.found && !runtime_attached_sound(&d->attach.as)))
		return -EBADMSG;
	d->serve.file.seen = &d->attach.seen;
	d->serve.file.thread = d->attach.thread;
	d->has_attach = true;
	d->file_err = decoder_open_file(d, m);
	return 0;
}

static int decoder_begin(struct decoder *d)
{
	int r = handover_receive(d->monitor, &d->message, "decoder", &d->config, decoder_take_job, d);

	if (r < 0 || !d->config || d->engine < 0)
		return r < 0 ? r : -EBADMSG;
	decode_serve_init(&d->serve, d->engine);
	d->serve.monitor = d->monitor;
	binary_cache_limit(CACHE_BYTES);
	r = sandbox_decoder(d->config, &d->user);
	return r ? r : ipc_send_bytes(d->monitor, IPC_READY, 0, NULL, 0);
}

static int decoder_take_question(struct decoder *d, struct ipc_message *m)
{
	return decode_serve_take(&d->serve, m);
}

/* One message of a socket, if there is one. 1; 0: it is over; errors: the sender breaks the rules. */
static int decoder_read(struct decoder *d, int sock, int (*take)(struct decoder *d, struct ipc_message *m))
{
	int r = ipc_receive(sock, &d->message), err;

	if (r != 1)
		return r == -EAGAIN ? 1 : r;
	err = take(d, &d->message);
	ipc_close_fds(&d->message);
	return err ? err : 1;
}

/* File and memory arrive in any order. */
static int decoder_attach_when_ready(struct decoder *d)
{
	int r = decoder_read(d, d->engine, decoder_take_attach), err;

	if (r == 1)
		r = decoder_read(d, d->monitor, decoder_take_memory);
	if (r != 1 || !d->has_attach || !d->has_memory)
		return r;
	err = d->memory_err ? d->memory_err : d->file_err;
	if (d->attach.found)
		r = decode_serve_attach_found(&d->serve, err, &d->at, &d->attach.as);
	else
		r = decode_serve_attach(&d->serve, err, &d->at, d->attach.reads);
	return r ? r : 1;
}

static int decoder_turn(struct decoder *d)
{
	struct pollfd p[2] = {{.fd = d->engine, .events = POLLIN}, {.fd = d->monitor, .events = POLLIN}};
	int r = poll(p, 2, IDLE_MS);

	if (r <= 0)
		return r < 0 && errno == EINTR ? 1 : 0;
	if (!d->has_attach || !d->has_memory)
		return decoder_attach_when_ready(d);
	if (p[1].revents)
		return decoder_read(d, d->monitor, decoder_take_memory);
	return decoder_read(d, d->engine, decoder_take_question);
}

int decoder_main(int sock)
{
	static struct decoder d;
	int r;

	log_init("decoder", LOG_LEVEL_INFO);
	d.monitor = sock;
	d.engine = -1;
	if (sandbox_begin() || decoder_begin(&d))
		return 1;
	while ((r = decoder_turn(&d)) == 1)
		;
	return r ? 1 : 0;
}
