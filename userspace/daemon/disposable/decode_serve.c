// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/decode_serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static int decode_serve_send(struct decode_serve *s, uint32_t type, uint64_t tag, size_t len)
{
	struct pollfd p = {.fd = s->sock, .events = POLLOUT};
	int err;

	while ((err = ipc_send_bytes(s->sock, type, tag, s->out, len)) == -EAGAIN)
		if (poll(&p, 1, DECODE_PATIENCE) != 1)
			return -EPIPE;
	return err;
}

void decode_serve_report(struct decode_serve *s, enum decode_source source, uint64_t addr, const void *bytes,
			 size_t len)
{
	const uint8_t *from = bytes;

	if (!s->reports)
		return;
	for (size_t at = 0; at < len && !s->failed; at += DECODE_BYTES) {
		uint32_t n = (uint32_t)MIN(len - at, (size_t)DECODE_BYTES);

		s->failed = decode_serve_send(s, IPC_READ, 0, decode_read_pack(source, addr + at, from + at, n, s->out));
	}
}

static int decode_serve_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	struct decode_serve *s = container_of(m, struct decode_serve, memory);
	ssize_t n;

	if (addr > INT64_MAX)
		return -EFAULT;
	n = pread(s->memory_fd, to, len, (off_t)addr);
	/* Where nothing is mapped, reading fails; it has an end only when there is no memory (Linux, fs/proc/base.c, mem_rw). */
	s->ended |= n == 0 && len;
	if (n != (ssize_t)len)
		return -EFAULT;
	decode_serve_report(s, DECODE_MEMORY, addr, to, len);
	return 0;
}

static void decode_serve_page(void *ctx, const struct binary *b, uint64_t offset, const void *data, size_t len)
{
	decode_serve_report(ctx, DECODE_FILE, offset, data, len);
}

void decode_serve_init(struct decode_serve *s, int sock)
{
	s->sock = sock;
	s->memory_fd = s->monitor = -1;
	s->memory.read = decode_serve_read;
	s->memory.beside = decode_beside;
}

/* The monitor learns of a walk before the engine can ask for it. */
static int decode_serve_vouch(const struct decode_serve *s, const struct otp_walk *walk)
{
	if (s->monitor < 0 || walk->start == OTP_WALK_NONE)
		return 0;
	return ipc_send_bytes(s->monitor, IPC_WALKABLE, 0, walk, sizeof(*walk));
}

int decode_serve_attach(struct decode_serve *s, int err, const struct decode_mapping *at, bool reports)
{
	char why[RUNTIME_WHY_MAX] = "";

	s->reports = reports;
	if (reports)
		binary_set_page_hook(decode_serve_page, s);
	if (!err)
		err = decode_bias(s->file.binary, at, &s->file.bias) ? -ENOEXEC : 0;
	if (!err)
		err = decode_attach(&s->file, &s->memory, &s->as, why);
	s->attached = !err;
	if (s->attached && (decode_serve_vouch(s, &s->as.walk) || decode_serve_vouch(s, &s->as.more)))
		return -EPIPE;
	if (s->failed)
		return -EPIPE;
	return decode_serve_send(s, IPC_ATTACHED, 0, decode_attached_pack(err, s->file.bias, &s->as, why, s->out));
}

int decode_serve_attach_found(struct decode_serve *s, int err, const struct decode_mapping *at,
			      const struct runtime_attached *found)
{
	if (!err)
		err = decode_bias(s->file.binary, at, &s->file.bias) ? -ENOEXEC : 0;
	/* The engine may be taken over: only of a file that holds this runtime. */
	if (!err && (decode_runtime_of_file(s->file.binary) != (int)found->runtime ||
		     !decode_runtime(found->runtime)->found_lasts))
		err = -ENOENT;
	s->attached = !err;
	if (s->attached)
		s->as = *found;
	return decode_serve_send(s, IPC_ATTACHED, 0, decode_attached_pack(err, s->file.bias, &s->as, "", s->out));
}

static int decode_serve_frame(struct decode_serve *s, uint64_t tag, uint32_t i, const struct runtime_frame *f)
{
	int err = decode_frame(&s->as, &s->memory, f, &s->function);

	if (s->failed)
		return -EPIPE;
	return decode_serve_send(s, IPC_FUNCTION, tag, decode_function_pack(err, i, &s->function, s->out));
}

static int decode_serve_code(struct decode_serve *s, uint64_t tag, uint32_t i, const struct runtime_frame *q)
{
	int err = decode_code(&s->as, &s->memory, q, &s->code);

	if (s->failed)
		return -EPIPE;
	if (err && s->ended)
		err = -ESRCH;
	return decode_serve_send(s, IPC_CODE, tag, decode_code_pack(err, i, &s->code, s->out));
}

int decode_serve_take(struct decode_serve *s, const struct ipc_message *m)
{
	const struct runtime_frame *frames;
	uint32_t count;
	int err = 0;

	if (m->head.type != IPC_DECODE || !s->attached || ipc_nr_fds(m) || decode_batch_unpack(m, &frames, &count))
		return -EBADMSG;
	for (uint32_t i = 0; i < count && !err; i++)
		err = frames[i].flags & RUNTIME_CODE ? decode_serve_code(s, m->head.tag, i, &frames[i]) :
						       decode_serve_frame(s, m->head.tag, i, &frames[i]);
	return err;
}
