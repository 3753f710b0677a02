// SPDX-License-Identifier: Apache-2.0
/* Questions of a worker that was taken over, and what may be in their answers. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/roles.h"
#include "process/host.h"
#include "takeover.h"

#define ANSWER_MS 5000

struct ipc_message takeover_answer;
uint64_t takeover_asked;
static uint64_t files_seen;

static const struct ipc_answer *await_answer(uint64_t tag)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)ANSWER_MS * NSEC_PER_MSEC;

	while (clock_now_ns() < deadline) {
		if (takeover_receive(ROLE_SOCKET, &takeover_answer, 200) != 1)
			continue;
		if (takeover_answer.head.type == IPC_STOP)
			_exit(0);
		if (takeover_answer.head.type == IPC_ANSWER && takeover_answer.head.tag == tag && takeover_answer.head.len >= sizeof(struct ipc_answer))
			return (const void *)takeover_answer.data;
		ipc_close_fds(&takeover_answer);
	}
	return NULL;
}

int takeover_ask(const struct ipc_ask *q, const char *path)
{
	struct {
		struct ipc_ask head;
		char path[HOST_PATH_MAX];
	} m = {.head = *q};
	const struct ipc_answer *a;

	if (++takeover_asked % 200 == 0)
		ipc_send(ROLE_SOCKET, IPC_BEAT, 0, &takeover_asked, sizeof(takeover_asked), NULL, 0);
	m.head.path_len = (uint32_t)strlen(path);
	memcpy(m.path, path, m.head.path_len);
	if (takeover_send(ROLE_SOCKET, IPC_ASK, takeover_asked, &m, (uint32_t)sizeof(m.head) + m.head.path_len,
			  (uint32_t)sizeof(m.head) + m.head.path_len, NULL, 0))
		return -EPIPE;
	a = await_answer(takeover_asked);
	if (!a)
		takeover_ok(false, "question of kind %u about pid %u, %s: it is answered", q->kind, q->pid, path);
	return a ? a->err : -ETIMEDOUT;
}

int takeover_ask_file(const struct ipc_ask *q, const struct ticket *file)
{
	struct {
		struct ipc_ask head;
		struct ticket file;
	} m = {*q, *file};
	const struct ipc_answer *a;

	if (takeover_send(ROLE_SOCKET, IPC_ASK, ++takeover_asked, &m, sizeof(m), sizeof(m), NULL, 0))
		return -EPIPE;
	a = await_answer(takeover_asked);
	return a ? a->err : -ETIMEDOUT;
}

static bool is_for_reading(int fd)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) != O_RDONLY)
		return false;
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED && pwrite(fd, "x", 1, 0) < 0 && ftruncate(fd, 0) < 0;
}

static bool is_program(int fd)
{
	uint8_t head[18] = {0};

	return pread(fd, head, sizeof(head), 0) == sizeof(head) && !memcmp(head, ELFMAG, SELFMAG) &&
	       head[EI_NIDENT] >= ET_REL && head[EI_NIDENT] <= ET_DYN && !head[EI_NIDENT + 1];
}

static bool is_sealed(int fd)
{
	const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;

	return (fcntl(fd, F_GET_SEALS) & seals) == seals;
}

/* What arrived may be held by an engine; closes it. Questions for text get a sealed memfd where it is long. */
static void check_answer(const struct ipc_ask *q, const char *path)
{
	bool program = q->kind == HOST_OPEN_MAPPED || q->kind == HOST_OPEN_DEBUG;
	bool text = !program && q->kind != HOST_OPEN_PERF_MAP;
	int n = ipc_nr_fds(&takeover_answer), fd = takeover_answer.fds[0];

	if (n > 1)
		takeover_ok(false, "kind %u, %s: %d descriptors arrived", q->kind, path, n);
	if (memmem(takeover_answer.data, takeover_answer.head.len, HELD_SECRET, strlen(HELD_SECRET)) || (n && takeover_holds_secret(fd)))
		takeover_ok(false, "kind %u about pid %u at %llx, %s: the secret arrived", q->kind, q->pid,
			    (unsigned long long)q->start, path);
	if (n && (text ? !is_sealed(fd) : !is_for_reading(fd) || (program && !is_program(fd))))
		takeover_ok(false, "kind %u about pid %u at %llx, %s: a descriptor arrived that is %s", q->kind, q->pid,
			    (unsigned long long)q->start, path, text ? "no sealed text" : "no program for reading");
	files_seen += n > 0;
	ipc_close_fds(&takeover_answer);
}

bool takeover_try(const struct ipc_ask *q, const char *path)
{
	uint64_t before = files_seen;

	takeover_answer.fds[0] = -1;
	if (takeover_ask(q, path) == 0)
		check_answer(q, path);
	else
		ipc_close_fds(&takeover_answer);
	return files_seen > before;
}

void takeover_try_names(const char *directory, uint32_t (*try_name)(const char *path))
{
	static const char *const absolute[] = {
		"/etc/shadow", "/etc/passwd", "/etc/../etc/shadow", "/proc/1/mem", "/proc/self/mem", "/proc/1/environ",
		"/proc/1/root/etc/shadow", "/proc/self/fd/3", "/proc/kcore", "/proc/kallsyms", "/proc/sysrq-trigger",
		"/dev/mem", "/dev/null", "/dev/zero", "/dev/tty", "/", "/root", "/tmp", "/sys/kernel/btf/vmlinux",
		"/sys/kernel/notes", "/sys/kernel/tracing/trace_pipe", "", "etc/shadow", "../etc/shadow", "."};
	static const char *const below[] = {"text", "core", "private", "fifo", "socket", "device", "link", "jitdump", ""};
	char path[HOST_PATH_MAX];
	uint32_t got = 0;

	for (size_t i = 0; i < ARRAY_SIZE(absolute); i++)
		got += try_name(absolute[i]);
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		snprintf(path, sizeof(path), "%.3900s/%s", directory, below[i]);
		got += try_name(path);
	}
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	got += try_name(path);
	takeover_ok(!got, "no name leads to a file that is no program, or a private one (%u)", got);
	snprintf(path, sizeof(path), "%.3900s/program", directory);
	takeover_ok(try_name(path), "a name leads to a program");
}
