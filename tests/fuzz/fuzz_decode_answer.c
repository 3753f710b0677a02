// SPDX-License-Identifier: Apache-2.0
/* What a decoder that was taken over may send to the engine: messages of any type and content, in any state. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/decode.h"
#include "daemon/engine/decoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct binary *binary;
static int decoder = -1;
static bool attaches; /* the first message is a good ATTACHED */
static uint8_t out[IPC_DATA_MAX];

static int on_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	const struct decode_opened opened = {.id = 1};
	int pair[2];

	if (decoder >= 0 || ipc_pair(pair))
		return -EBUSY;
	decoder = pair[1];
	fn(ctx, 0, pair[0], &opened, sizeof(opened));
	return 0;
}

static void on_cancel(struct host *h, void *ctx)
{
}

static const struct host_ops host_ops = {.ask = on_ask, .cancel = on_cancel};
static struct host host = {.ops = &host_ops};

static void on_end(void *ctx, uint64_t id)
{
}

static void on_attached(void *ctx, struct decoder *d, int err, const struct runtime_attached *a, const char *why)
{
	const struct runtime_frame frames[4] = {{.key = 1}, {.key = 2, .flags = RUNTIME_CODE}, {.key = 3}, {.key = 4}};

	if ((!err && !runtime_attached_sound(a)) || strnlen(why, RUNTIME_WHY_MAX) == RUNTIME_WHY_MAX)
		abort();
	if (!err)
		decoders_decode(d, frames, 4);
}

/* All of it is read, so that the sanitizers see it. */
static void on_function(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
			const struct runtime_function *fn)
{
	if (err > 0 || (!err && (strlen(fn->name) >= RUNTIME_NAME_MAX || strlen(fn->file) >= RUNTIME_PATH_MAX)))
		abort();
	for (uint32_t i = 1; !err && i < fn->nr_lines; i++)
		if (fn->lines[i].position < fn->lines[i - 1].position)
			abort();
}

static void on_code(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
		    const struct runtime_code_made *c)
{
	if (err > 0 || (!err && (f->key < c->code.start || !runtime_code_sound(&c->code, c->nodes, c->rows))))
		abort();
}

static const struct decoders_ops ops = {.attached = on_attached, .function = on_function, .code = on_code};

/* A head of ours with a type and length that fit, or not; data chooses. */
static size_t send_one(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {IPC_ATTACHED, IPC_FUNCTION, IPC_READ, IPC_CODE};
	struct ipc_head *head = (void *)out;
	size_t len = MIN((size_t)data[1] * 8, size - 2);

	*head = (struct ipc_head){.type = types[data[0] % 4], .len = (uint32_t)len, .tag = data[0] & 64 ? data[0] : 1};
	memcpy(head + 1, data + 2, len);
	send(decoder, out, sizeof(*head) + len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 2 + len;
}

static void play(struct decoders *ds, const uint8_t *data, size_t size)
{
	const struct runtime_attached good = {.version = "1"};

	if (attaches)
		ipc_send_bytes(decoder, IPC_ATTACHED, 0, out, decode_attached_pack(0, 0, &good, "", out));
	while (size > 2) {
		size_t used = send_one(data, size);

		data += used;
		size -= used;
		decoders_read(ds);
	}
	decoders_read(ds);
	decoders_run(ds, clock_now_ns() + 60 * NSEC_PER_SEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(closep) int epoll = epoll_create1(EPOLL_CLOEXEC);
	const struct decoders_config cfg = {.host = &host, .epoll = epoll, .end = on_end};
	struct decoders_target target = {.pid = 1, .start_ns = 1};
	struct decoders *ds;

	if (!size || (!binary && binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "", &binary)) ||
	    decoders_new(&cfg, &ds))
		return 0;
	attaches = data[0] & 1;
	decoders_listen(ds, &ops, NULL);
	target.binary = binary;
	decoders_attach(ds, &target, NULL);
	if (decoder >= 0)
		play(ds, data + 1, size - 1);
	decoders_free(ds);
	closep(&decoder);
	decoder = -1;
	return 0;
}
