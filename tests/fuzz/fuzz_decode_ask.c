// SPDX-License-Identifier: Apache-2.0
/* What an engine that was taken over may ask of a decoder, whose memory is /dev/zero. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/disposable/decode_serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ipc_message message;
static int zero = -1;

/* Reads what lies at key: its first bytes are the size of the next read. */
static int decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret)
{
	uint64_t word;
	int err = memory_u64(m, f->key, &word);

	ret->nr_lines = (uint32_t)f->cookie[0] % (RUNTIME_LINES_MAX + 2);
	memset(ret->name, f->flags & 1 ? 'x' : 0, sizeof(ret->name));
	memset(ret->file, f->flags & 2 ? 'x' : 0, sizeof(ret->file));
	return err;
}

static int attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX])
{
	ret->walk = (struct otp_walk){.start = OTP_WALK_AT, .nr_chain = 1, .frames_max = 1, .keep = 1};
	return 0;
}

static int find(struct binary *b)
{
	return 0;
}

static const struct runtime_ops fuzz_ops = {.attach = attach, .decode = decode};
static const struct runtime_ops *const list[] = {&fuzz_ops, NULL};

static void drain(int sock)
{
	static struct ipc_message answer;

	while (ipc_receive_plain(sock, &answer) == 1)
		;
}

/* Few frames: nobody reads while they are answered. */
static void ask(struct decode_serve *s, int engine, const uint8_t *data, size_t size)
{
	size_t len = MIN(size, (size_t)200);

	message.head = (struct ipc_head){.type = data[0] & 1 ? IPC_DECODE : IPC_ATTACH, .len = (uint32_t)len};
	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
	memcpy(message.data, data, len);
	if (!(data[0] & 2) && len >= 8)
		((struct decode_batch *)(void *)message.data)->count = (uint32_t)(len - 8) / sizeof(struct runtime_frame);
	decode_serve_take(s, &message);
	drain(engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct decode_mapping at = {0};
	struct decode_serve *s = calloc(1, sizeof(*s));
	int pair[2];

	zero = zero < 0 ? open("/dev/zero", O_RDONLY | O_CLOEXEC) : zero;
	if (!s || !size || ipc_pair(pair)) {
		free(s);
		return 0;
	}
	decode_set_runtimes(find, list);
	decode_serve_init(s, pair[1]);
	s->memory_fd = zero;
	binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "", &s->file.binary);
	if (data[0] & 16)
		decode_serve_attach_found(s, 0, &at, &(struct runtime_attached){0});
	else
		decode_serve_attach(s, 0, &at, data[0] & 4);
	s->attached = data[0] & 8 || s->attached;
	drain(pair[0]);
	while (size) {
		size_t n = MIN(size, (size_t)208);

		ask(s, pair[0], data, n);
		data += n;
		size -= n;
	}
	binary_set_page_hook(NULL, NULL);
	binary_put(s->file.binary);
	close(pair[0]);
	close(pair[1]);
	free(s);
	return 0;
}
