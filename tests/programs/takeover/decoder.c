// SPDX-License-Identifier: Apache-2.0
/*
 * A decoder that was taken over: it has the memory of a process and a file, and
 * tries to pass them on, to write, and to reach more. The engine is a stand-in as
 * well, which asks for decoders, and looks at what arrives from them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/config/config.h"
#include "daemon/decode.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "takeover.h"

#define SOCK	 ROLE_SOCKET
#define DECODERS 3

int __real_sandbox_engine(const struct config *c, bool captures);
int __wrap_sandbox_engine(const struct config *c, bool captures);
int __real_sandbox_decoder(const struct config *c, const struct sandbox_user *user);
int __wrap_sandbox_decoder(const struct config *c, const struct sandbox_user *user);

static struct ipc_message message;

/* --- the decoder --- */

static int find_engine(void)
{
	struct stat st;

	for (int fd = SOCK + 1; fd < 64; fd++)
		if (!fstat(fd, &st) && S_ISSOCK(st.st_mode))
			return fd;
	return -1;
}

/* The memory, from an opener. */
static int await_memory(void)
{
	while (takeover_receive(SOCK, &message, 5000) == 1) {
		if (message.head.type == IPC_ANSWER)
			return ipc_take_fd(&message, 0);
		ipc_close_fds(&message);
	}
	return -1;
}

static void check_memory(int memory)
{
	char secret[64] = "";
	uint64_t word = 0;

	takeover_ok(pread(memory, secret, sizeof(secret) - 1, (off_t)HELD_MEMORY) > 0 &&
			    !strncmp(secret, HELD_SECRET, strlen(HELD_SECRET)),
		    "a decoder reads the memory of its process");
	takeover_ok(pwrite(memory, &word, sizeof(word), (off_t)HELD_MEMORY) < 0 && write(memory, &word, sizeof(word)) < 0,
		    "it cannot write there");
	takeover_ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, 0) == MAP_FAILED, "or map it");
}

/* A descriptor; or the error. */
static int ask_for_file(uint64_t address, const char *name)
{
	static uint64_t tag;
	struct {
		struct ipc_beside head;
		char name[64];
	} ask = {.head.address = address};
	const struct ipc_answer *a = (const void *)message.data;

	strcpy(ask.name, name);
	ipc_send_bytes(SOCK, IPC_BESIDE, ++tag, &ask, sizeof(ask.head) + strlen(name));
	while (takeover_receive(SOCK, &message, 5000) == 1) {
		if (message.head.type == IPC_ANSWER && message.head.tag == tag)
			return a->err ? a->err : ipc_take_fd(&message, 0);
		ipc_close_fds(&message);
	}
	return -ETIMEDOUT;
}

/* Beside the program that the process has mapped, and elsewhere. */
static void check_files(void)
{
	static const char *const others[] = {"text.pdb", "link.pdb", "fifo.pdb", "nothing.pdb"};
	int fd = ask_for_file(HELD_FIRST, "app.pdb");
	uint8_t byte = 0;
	uint32_t got = 0;

	takeover_ok(fd >= 0 && pread(fd, &byte, 1, 0) == 1 && byte == 'B',
		    "it gets a PDB beside what its process has mapped (%d)", fd);
	takeover_ok(pwrite(fd, &byte, 1, 0) < 0 && write(fd, &byte, 1) < 0, "and cannot write it");
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		got += ask_for_file(HELD_FIRST, others[i]) >= 0;
	got += ask_for_file(HELD_MEMORY, "app.pdb") >= 0;
	got += ask_for_file(HELD_FIRST + 8 * HELD_STEP, "app.pdb") >= 0; /* beside /etc/shadow */
	takeover_ok(!got, "it gets no other file (%u)", got);
}

/* By every call that can pass a descriptor. */
static void pass_on(int to, const char *whom, int memory)
{
	struct iovec iov = {.iov_base = &message, .iov_len = sizeof(message.head)};
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct cmsghdr *c = (void *)control;
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
					.msg_controllen = sizeof(control)}};

	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &memory, sizeof(memory));
	takeover_ok(sendmsg(to, &m.msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && sendmmsg(to, &m, 1, MSG_DONTWAIT) < 0,
		    "it passes the memory's descriptor to nobody (%s)", whom);
}

static bool events_are_refused(void)
{
	return syscall(SYS_eventfd2, 0, 0) < 0 && syscall(SYS_epoll_create1, 0) < 0;
}

static void reach_out(void)
{
	static const char *const paths[] = {"/", "/proc", "/proc/self/mem", "/proc/1/mem", "/proc/self/fd/4", "/etc/passwd",
					    "/dev/null", "."};
	uint32_t got = 0;
	char byte;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		got += open(paths[i], O_RDONLY) >= 0 || open(paths[i], O_PATH) >= 0 || open(paths[i], O_RDWR) >= 0;
	takeover_ok(!got, "it opens no path (%u)", got);
	for (int family = 0; family < 48; family++)
		for (int type = 1; type < 6; type++)
			got += socket(family, type, 0) >= 0;
	takeover_ok(!got, "it makes no socket (%u)", got);
	takeover_ok(dup(SOCK) < 0 && memfd_create("x", 0) < 0 && fcntl(SOCK, F_DUPFD, 10) < 0 && events_are_refused(),
		    "it makes no descriptor");
	takeover_ok(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED,
		    "it makes no code");
	takeover_ok(mmap(NULL, 128u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED,
		    "its memory is bounded");
	takeover_ok(kill(getppid(), 0) < 0 && kill((pid_t)takeover_held[0].pid, 0) < 0, "it signals nobody");
	takeover_ok(readlinkat(AT_FDCWD, "/proc/self/exe", &byte, 1) < 0, "it reads no link");
}

/* To monitor and engine, as much as they take, of every type and length. */
static void flood(int sock)
{
	static uint8_t data[sizeof(struct ipc_head) + IPC_DATA_MAX];
	struct ipc_head *head = (void *)data;
	uint32_t type, len;

	for (int t = 0; takeover_type(&t, &type);)
		for (int l = 0; takeover_length(&l, &len);) {
			memset(data, (t & 1) ? 0xff : 0, sizeof(data));
			*head = (struct ipc_head){.type = type, .len = len, .tag = (uint64_t)l & 1};
			if (send(sock, data, sizeof(*head) + len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
				return;
		}
}

int __wrap_sandbox_decoder(const struct config *c, const struct sandbox_user *user)
{
	int err = __real_sandbox_decoder(c, user), engine, memory;
	uint32_t chance = 0;

	if (err)
		return err;
	engine = find_engine();
	ipc_send_bytes(SOCK, IPC_READY, 0, NULL, 0);
	memory = await_memory();
	takeover_ok(engine >= 0 && memory >= 0, "a decoder has its engine, and gets the memory");
	check_memory(memory);
	check_files();
	pass_on(engine, "the engine", memory);
	pass_on(SOCK, "the monitor", memory);
	reach_out();
	if (getrandom(&chance, sizeof(chance), 0) == sizeof(chance))
		flood(chance & 1 ? engine : SOCK);
	/* Whoever has no use for it ends it; else the monitor does. */
	while (takeover_receive(SOCK, &message, 60000) == 1)
		ipc_close_fds(&message);
	_exit(1);
}

/* --- the engine --- */

/* Whatever its decoders send: no descriptor and no secret arrives. */
static void ask_decoders(void)
{
	const struct ipc_ask q = {.kind = HOST_OPEN_DECODER, .pid = takeover_held[0].pid,
				  .pid_start_ns = takeover_held[0].start_ns, .start = HELD_FIRST,
				  .end = HELD_FIRST + HELD_BYTES};
	struct ticket file;
	_cleanup_(closep) int fd = takeover_program(&file);

	for (int i = 0; i < DECODERS; i++)
		takeover_ok(takeover_decoder(&q, &file, fd) < 0, "nothing that a decoder sends is taken for good");
}

int __wrap_sandbox_engine(const struct config *c, bool captures)
{
	int err = __real_sandbox_engine(c, captures);

	if (err)
		return err;
	ipc_send(SOCK, IPC_READY, 0, NULL, 0, NULL, 0);
	takeover_find();
	ask_decoders();
	takeover_done();
	takeover_stay(SOCK);
}
