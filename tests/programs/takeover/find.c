// SPDX-License-Identifier: Apache-2.0
/* The processes that hold something, their program, and decoders of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/decode.h"
#include "daemon/roles.h"
#include "process/host.h"
#include "takeover.h"

#define DECODER_MS 2000
#define BEAT_MS	   500

struct takeover_process takeover_held[2];
char takeover_directory[HOST_PATH_MAX];

static void take_entry(const struct host_scan_entry *e, const char *text)
{
	const struct host_identity_text *id = (const void *)text;
	const char *at = id->text;
	size_t len = 0;

	for (int i = 0; i < HOST_TEXT_STATUS; i++)
		at += id->len[i];
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "Name:\t" OTHER_COMM "\n" : "Name:\t" HELD_COMM "\n";

		len = strlen(name);
		if (id->len[HOST_TEXT_STATUS] < len || memcmp(at, name, len) != 0)
			continue;
		takeover_held[i] = (struct takeover_process){e->pid, id->start_ns};
		len = MIN(id->len[HOST_TEXT_EXE], sizeof(takeover_directory) - 1);
		memcpy(takeover_directory, id->text, len);
		takeover_directory[len] = '\0';
		*strrchr(takeover_directory, '/') = '\0';
	}
}

void takeover_find(void)
{
	const struct ipc_ask q = {.kind = HOST_SCAN};
	const struct host_scan_entry *e;
	struct stat st;
	char *all;
	size_t at = 0;

	if (takeover_ask(&q, "") || fstat(takeover_answer.fds[0], &st)) {
		takeover_ok(false, "the processes are listed");
		_exit(1);
	}
	all = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, takeover_answer.fds[0], 0);
	while (at + sizeof(*e) < (size_t)st.st_size) {
		e = (const void *)(all + at);
		take_entry(e, all + at + sizeof(*e));
		at += (sizeof(*e) + e->identity_len + e->maps_len + 7) & ~7ull;
	}
	takeover_ok(!memmem(all, (size_t)st.st_size, HELD_SECRET, strlen(HELD_SECRET)),
		    "identities of all processes hold no secret");
	ipc_close_fds(&takeover_answer);
	takeover_ok(takeover_held[0].pid && takeover_held[1].pid, "both processes that hold a secret are known");
	if (!takeover_held[0].pid || !takeover_held[1].pid)
		_exit(1);
}

int takeover_program(struct ticket *ret_file)
{
	const struct ipc_ask q = {.kind = HOST_OPEN_MAPPED, .pid = takeover_held[0].pid, .start = HELD_FIRST,
				  .end = HELD_FIRST + HELD_BYTES};

	if (takeover_ask(&q, "") || takeover_answer.head.len != sizeof(struct ipc_answer) + sizeof(*ret_file)) {
		takeover_ok(false, "the program arrives with its ticket");
		_exit(1);
	}
	memcpy(ret_file, takeover_answer.data + sizeof(struct ipc_answer), sizeof(*ret_file));
	return ipc_take_fd(&takeover_answer, 0);
}

/* Alive meanwhile, for the monitor. */
static int await_decoder(int sock, struct ipc_message *m)
{
	int r = -ETIMEDOUT;

	for (int ms = 0; ms < DECODER_MS && r == -ETIMEDOUT; ms += BEAT_MS) {
		ipc_send(ROLE_SOCKET, IPC_BEAT, 0, &takeover_asked, sizeof(takeover_asked), NULL, 0);
		r = takeover_receive(sock, m, BEAT_MS);
	}
	return r;
}

/* One message of a decoder. 1; else it has ended, or is silent. */
static int read_decoder(int sock, struct ipc_message *m)
{
	struct decode_read read;
	const uint8_t *bytes;
	int r = await_decoder(sock, m);

	if (r != 1)
		return r;
	if (ipc_nr_fds(m))
		takeover_ok(false, "a decoder passed a descriptor");
	if (memmem(m->data, m->head.len, HELD_SECRET, strlen(HELD_SECRET)))
		takeover_ok(false, "a decoder passed the secret");
	if (m->head.type == IPC_READ && (decode_read_unpack(m, &read, &bytes) || read.source != DECODE_FILE))
		takeover_ok(false, "a decoder passed memory of a process without a runtime");
	ipc_close_fds(m);
	return 1;
}

static int attach_decoder(int sock, int fd)
{
	static struct ipc_message m;
	const struct decode_attach a = {.reads = 1};
	struct decode_attached attached;
	int r = takeover_send(sock, IPC_ATTACH, 0, &a, sizeof(a), sizeof(a), &fd, 1);

	while (!r && (r = read_decoder(sock, &m)) == 1) {
		if (m.head.type == IPC_ATTACHED)
			return decode_attached_unpack(&m, &attached) ? -EBADMSG : attached.err;
		r = 0;
	}
	return r ? r : -EPIPE;
}

int takeover_decoder(const struct ipc_ask *q, const struct ticket *file, int fd)
{
	const struct decode_opened *opened = (const void *)(takeover_answer.data + sizeof(struct ipc_answer));
	_cleanup_(closep) int sock = -1;
	uint64_t id;
	int err = takeover_ask_file(q, file);

	if (err)
		return err;
	sock = ipc_take_fd(&takeover_answer, 0);
	id = opened->id;
	if (sock < 0 || takeover_answer.head.len != sizeof(struct ipc_answer) + sizeof(*opened))
		return -EBADMSG;
	err = attach_decoder(sock, fd);
	takeover_send(ROLE_SOCKET, IPC_DECODER_END, 0, &id, sizeof(id), sizeof(id), NULL, 0);
	return err;
}
