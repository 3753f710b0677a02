// SPDX-License-Identifier: Apache-2.0
/*
 * An engine that was taken over right after it closed its sandbox: it has the
 * descriptors and mappings that an engine has, and asks for what it must not
 * have. First what costs it nothing; then, one a life, messages for which the
 * monitor must kill it; at last it lies in its ledger.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "takeover.h"

#define SOCK	    ROLE_SOCKET
#define PLANS	    300
#define QUESTIONS   200 /* at once: more than the monitor keeps */
#define RARE_LIFE_NS (450 * NSEC_PER_MSEC) /* one that ends sooner makes the pause before the next one longer */

int __real_sandbox_engine(const struct config *c, bool captures);
int __wrap_sandbox_engine(const struct config *c, bool captures);

static struct ledger_engine_page *page;
static uint64_t began_ns;

/* --- before the sandbox --- */

/* The engine has mapped its ledger; where, only /proc knows. Its figure top_total counts the lives. */
static void find_ledger(void)
{
	_cleanup_(fclosep) FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long at;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "engine-ledger") && sscanf(line, "%lx", &at) == 1)
			page = (void *)at;
}

/* --- mapped files --- */

static void try_mapping(uint32_t pid, size_t i, const char *path)
{
	uint64_t at = HELD_FIRST + i * HELD_STEP;
	const uint64_t ranges[][2] = {{at, at + HELD_BYTES}, {at + 4096, at + 8192}, {at + 1, at + 2}, {at, UINT64_MAX},
				      {at + HELD_BYTES, at}, {at - HELD_STEP / 2, at + 1}};
	const uint64_t inodes[] = {0, 1, UINT64_MAX};
	uint32_t got = 0;

	for (size_t r = 0; r < ARRAY_SIZE(ranges); r++)
		for (size_t n = 0; n < ARRAY_SIZE(inodes); n++) {
			const struct ipc_ask q = {.kind = HOST_OPEN_MAPPED, .pid = pid, .start = ranges[r][0],
						  .end = ranges[r][1], .ino = inodes[n], .alternate_pid = n == 1};

			/* A range without end also covers code that may be read. */
			got += takeover_try(&q, path) && r != 3;
		}
	takeover_ok(!i == (got > 0), "%s mapped with protection %d %s (pid %u: %u)", held_files[i].name,
		    held_files[i].protection, i ? "does not arrive" : "arrives", pid, got);
}

static void try_mappings(void)
{
	char path[HOST_PATH_MAX + 64];

	for (int p = 0; p < 2; p++)
		for (size_t i = 0; i < ARRAY_SIZE(held_files); i++) {
			snprintf(path, sizeof(path), "%s/%s", takeover_directory, held_files[i].name);
			try_mapping(takeover_held[p].pid, i, held_files[i].name[0] == '/' ? held_files[i].name : i ? "" : path);
		}
}

/* --- names --- */

/* In the root of any process, or of its neighbour. */
static uint32_t try_name(const char *path)
{
	const uint32_t pids[] = {takeover_held[0].pid, takeover_held[1].pid, 1, (uint32_t)getppid(), (uint32_t)getpid(), 0, 2, UINT32_MAX};
	uint32_t got = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		const struct ipc_ask own = {.kind = HOST_OPEN_MAPPED, .pid = pids[i]};
		const struct ipc_ask neighbour = {.kind = HOST_OPEN_MAPPED, .pid = UINT32_MAX, .alternate_pid = pids[i]};

		got += takeover_try(&own, path);
		got += takeover_try(&neighbour, path);
	}
	return got;
}

/* --- all other questions --- */

static void try_memory_and_texts(void)
{
	static const uint32_t kinds[] = {HOST_OPEN_MAPPED, HOST_READ_MAPS, HOST_READ_IDENTITY, HOST_SCAN, HOST_OPEN_PERF_MAP};
	const uint32_t pids[] = {takeover_held[0].pid, takeover_held[1].pid, 0, 1, 2, (uint32_t)getppid(), (uint32_t)getpid(), UINT32_MAX};
	uint32_t files = 0;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t p = 0; p < ARRAY_SIZE(pids); p++) {
			struct ipc_ask q = {.kind = kinds[k], .pid = pids[p], .start = HELD_MEMORY,
					    .end = HELD_MEMORY + HELD_BYTES, .len = kinds[k] == HOST_SCAN};

			files += takeover_try(&q, "") && kinds[k] == HOST_OPEN_PERF_MAP;
			q.pid_start_ns = 1;
			q.ino = UINT64_MAX;
			files += takeover_try(&q, "") && kinds[k] == HOST_OPEN_PERF_MAP;
		}
	takeover_ok(!files, "no perf map of another user, and none by a link (%u)", files);
}

/* --- decoders --- */

/* Of a process that runs no interpreter: there is nothing to be read. */
static void try_decoder(const char *what, const struct ipc_ask *q, const struct ticket *file, int fd)
{
	int err = takeover_decoder(q, file, fd);

	takeover_ok(err < 0, "a decoder for %s finds nothing (%s)", what, strerror(-err));
}

static void try_decoders(void)
{
	const struct takeover_process *root = &takeover_held[0], *other = &takeover_held[1];
	const struct ipc_ask program = {.kind = HOST_OPEN_DECODER, .pid = root->pid, .pid_start_ns = root->start_ns,
					.start = HELD_FIRST, .end = HELD_FIRST + HELD_BYTES};
	struct ipc_ask q = program;
	struct ticket file;
	_cleanup_(closep) int fd = takeover_program(&file);

	try_decoder("a program that is no runtime", &q, &file, fd);
	q.pid_start_ns += NSEC_PER_SEC;
	try_decoder("another start of it", &q, &file, fd);
	q = program;
	q.pid = other->pid;
	try_decoder("another process' start", &q, &file, fd);
	q = program;
	q.pid = (uint32_t)getppid();
	try_decoder("the monitor", &q, &file, fd);
	q.pid = 1;
	try_decoder("the first process", &q, &file, fd);
	q = program;
	q.start = HELD_MEMORY, q.end = HELD_MEMORY + HELD_BYTES;
	try_decoder("memory without a file", &q, &file, fd);
	q.start = HELD_FIRST + 2 * HELD_STEP, q.end = q.start + HELD_BYTES;
	try_decoder("another file that is mapped executable", &q, &file, fd);
	q.start = 0, q.end = UINT64_MAX;
	try_decoder("all of its mappings", &q, &file, fd);
	try_decoder("a file that is not the ticket's", &program, &file, SOCK);
}

static void try_too_many(void)
{
	const struct ipc_ask q = {.kind = HOST_READ_IDENTITY, .pid = 1};
	uint64_t first = takeover_asked + 1, deadline = clock_now_ns() + 10 * NSEC_PER_SEC;
	uint32_t answers = 0;

	for (int i = 0; i < QUESTIONS; i++)
		takeover_send(SOCK, IPC_ASK, ++takeover_asked, &q, sizeof(q), sizeof(q), NULL, 0);
	while (answers < QUESTIONS && clock_now_ns() < deadline) {
		if (takeover_receive(SOCK, &takeover_answer, 500) != 1)
			continue;
		answers += takeover_answer.head.type == IPC_ANSWER && takeover_answer.head.tag >= first;
		ipc_close_fds(&takeover_answer);
	}
	takeover_ok(answers == QUESTIONS, "each of %d questions at once has one answer (%u)", QUESTIONS, answers);
}

/* --- messages --- */

/* Of these, some lengths are deadly; they are tried later. */
static bool is_strict(uint32_t type)
{
	return type == IPC_ASK || type == IPC_PLAN || type == IPC_HINT || type == IPC_WALK;
}

static void flood(int sock, const char *what)
{
	const struct takeover_flood f = {.leaves_out = sock == SOCK ? is_strict : NULL};
	uint32_t sent;
	int err = takeover_flood(sock, &f, &sent);

	/* net may take an engine that sends nonsense for dead, and close. */
	takeover_ok(sock != SOCK || !err, "%s: %u messages of all types and lengths (%s)", what, sent, strerror(-err));
}

static void try_plans(void)
{
	struct {
		struct ipc_plan head;
		struct otp_plan plan;
	} m;
	struct ipc_hint hint;
	uint64_t state = 88172645463325252u;
	int err = 0;

	for (int i = 0; i < PLANS && !err; i++) {
		for (size_t b = 0; b < sizeof(m); b++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			((uint8_t *)&m)[b] = i % 3 ? (uint8_t)state : i & 1 ? 0xff : 0;
		}
		m.head.pid = takeover_held[i & 1].pid;
		m.head.remove = i % 5 == 0;
		memset(&hint, i % 3 ? 0 : 0x41, sizeof(hint));
		memset(hint.comm, (int)(state & 0xff), sizeof(hint.comm));
		err = takeover_send(SOCK, IPC_PLAN, 0, &m, sizeof(m), sizeof(m), NULL, 0);
		hint.hint.stack_bytes = 4096;
		hint.hint.base_bytes = 0;
		if (!err)
			err = takeover_send(SOCK, IPC_HINT, 0, &hint, sizeof(hint), sizeof(hint), NULL, 0);
	}
	takeover_ok(!err, "plans and hints of any content");
}

/* Walks that are sound, and lead anywhere: no decoder vouched for them. Every third is of random bytes. */
static void try_walks(void)
{
	struct {
		struct ipc_walk head;
		struct otp_walks walks;
	} m;
	uint64_t state = 88172645463325252u;
	int err = 0;

	for (int i = 0; i < PLANS && !err; i++) {
		for (size_t b = 0; b < sizeof(m); b++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			((uint8_t *)&m)[b] = (uint8_t)state;
		}
		m.head.pid = takeover_held[i & 1].pid;
		m.head.remove = i % 7 == 0;
		if (i % 3) {
			m.walks = (struct otp_walks){.generation = (uint32_t)state | 1, .start_ns = takeover_held[i & 1].start_ns};
			m.walks.plan[i & 1] = (struct otp_walk){.start = OTP_WALK_AT, .step = OTP_WALK_LINK, .nr_chain = 1,
								.base = state, .frames_max = 64, .keep = 0xffff};
		}
		err = takeover_send(SOCK, IPC_WALK, 0, &m, m.head.remove ? sizeof(m.head) : sizeof(m),
				    m.head.remove ? sizeof(m.head) : sizeof(m), NULL, 0);
	}
	takeover_ok(!err, "walks of any content");
}

/* --- what it holds --- */

static void check_held(void)
{
	int sockets = 0, writable = 0, others = 0;
	struct stat st;

	for (int fd = 0; fd < 4096; fd++) {
		if (fstat(fd, &st))
			continue;
		sockets += S_ISSOCK(st.st_mode);
		others += S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode);
		writable += fd > STDERR_FILENO && S_ISREG(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	}
	takeover_ok(sockets <= 2 && !writable && !others,
		    "an engine holds two sockets, no file to write, no directory (%d, %d, %d)", sockets, writable, others);
}

static void attack_quietly(void)
{
	struct ipc_ask program = {.kind = HOST_OPEN_MAPPED, .start = HELD_FIRST, .end = HELD_FIRST + HELD_BYTES};

	check_held();
	takeover_find();
	program.pid = takeover_held[0].pid;
	try_mappings();
	takeover_try_names(takeover_directory, try_name);
	try_memory_and_texts();
	try_decoders();
	try_too_many();
	try_plans();
	try_walks();
	flood(SOCK, "the monitor");
	if (takeover_peer() >= 0)
		flood(takeover_peer(), "net");
	takeover_ok(takeover_try(&program, ""), "after all of that, a program that may be opened still is (%llu questions)",
		    (unsigned long long)takeover_asked);
}

/* --- messages that end it --- */

struct deadly {
	const char *what;
	uint32_t type, len, claimed;
	struct ipc_ask ask;
	int nr_fds, fd;
};

static const struct deadly deadly[] = {
	{"kind 0", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = 0}, 0, 0},
	{"a process' memory, as it was once", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = 4, .pid = 1}, 0, 0},
	{"the indexer's question", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_DEBUG, .pid = 1}, 0, 0},
	{"the monitor's question", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_READ_CONTAINERS}, 0, 0},
	{"a kind that does not exist", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = UINT32_MAX}, 0, 0},
	{"a question that is short", IPC_ASK, sizeof(struct ipc_ask) - 1, 0, {.kind = HOST_READ_MAPS}, 0, 0},
	{"a question of nothing", IPC_ASK, 0, 0, {0}, 0, 0},
	{"a path that is not there", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_MAPPED, .path_len = 1}, 0, 0},
	{"a path of 4 GB", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_MAPPED, .path_len = UINT32_MAX}, 0, 0},
	{"a question with a descriptor", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_READ_MAPS}, 1, SOCK},
	{"a number of processes for a file", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_MAPPED, .len = 1}, 0, 0},
	{"an index without a ticket", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_INDEX}, 0, 0},
	{"a decoder without a ticket", IPC_ASK, sizeof(struct ipc_ask), 0,
	 {.kind = HOST_OPEN_DECODER, .pid = 1, .pid_start_ns = 1, .end = 1}, 0, 0},
	{"a decoder with a forged ticket", IPC_ASK, sizeof(struct ipc_ask) + sizeof(struct ticket), 0,
	 {.kind = HOST_OPEN_DECODER, .pid = 1, .pid_start_ns = 1, .end = 1}, 0, 0},
	{"an index of a socket", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_INDEX}, 1, SOCK},
	{"an index of two files", IPC_ASK, sizeof(struct ipc_ask), 0, {.kind = HOST_OPEN_INDEX}, 2, STDERR_FILENO},
	{"a plan of the wrong size", IPC_PLAN, 9, 0, {0}, 0, 0},
	{"walks of the wrong size", IPC_WALK, sizeof(struct ipc_walk) + 8, 0, {0}, 0, 0},
	{"a hint of the wrong size", IPC_HINT, 1, 0, {0}, 0, 0},
	{"a type that does not exist", 99, 0, 0, {0}, 0, 0},
	{"a length that is not true", IPC_BEAT, 8, 9, {0}, 0, 0},
	{"a descriptor", IPC_BEAT, 0, 0, {0}, 1, SOCK},
	{"five descriptors", IPC_BEAT, 0, 0, {0}, 5, SOCK},
	{"sixteen descriptors", IPC_BEAT, 0, 0, {0}, 16, SOCK},
};

static void live_long_enough(void)
{
	uint64_t now = clock_now_ns(), end = began_ns + RARE_LIFE_NS;
	struct timespec ts = {.tv_nsec = (long)(end > now ? end - now : 0)};

	nanosleep(&ts, NULL);
}

static void attack_once(const struct deadly *d)
{
	uint8_t data[sizeof(d->ask) + sizeof(struct ticket)] = {0};
	int fds[16];
	uint32_t claimed = d->claimed ? d->claimed : d->len;

	for (int i = 0; i < 16; i++)
		fds[i] = d->fd;
	live_long_enough();
	memcpy(data, &d->ask, sizeof(d->ask));
	takeover_send(SOCK, d->type, 1, data, d->len, claimed, fds, d->nr_fds);
	takeover_expect_death(SOCK, d->what);
}

/* --- the ledger --- */

static void lie_in_ledger(void)
{
	static const uint8_t patterns[] = {0xff, 0x00, 0x80, 0x41};
	uint64_t beat = 0;

	for (int i = 0; i < 20; i++) {
		memset(page, patterns[i % 4], sizeof(*page));
		page->slot[0].top_total = page->slot[1].top_total = ARRAY_SIZE(deadly) + 1;
		ipc_send(SOCK, IPC_RELEASED, 0, NULL, 0, NULL, 0);
		ipc_send(SOCK, IPC_BEAT, 0, &beat, sizeof(beat), NULL, 0);
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
}

int __wrap_sandbox_engine(const struct config *c, bool captures)
{
	uint64_t life;
	int err;

	began_ns = clock_now_ns();
	find_ledger();
	err = __real_sandbox_engine(c, captures);
	if (err || !page)
		return err ? err : -ENOENT;
	ipc_send(SOCK, IPC_READY, 0, NULL, 0, NULL, 0);
	life = page->slot[0].top_total;
	page->slot[0].top_total = page->slot[1].top_total = life + 1;
	if (life == 0)
		attack_quietly();
	if (life < ARRAY_SIZE(deadly))
		attack_once(&deadly[life]);
	if (life == ARRAY_SIZE(deadly)) {
		takeover_ok(true, "each of %zu malformed messages ended an engine", ARRAY_SIZE(deadly));
		lie_in_ledger();
	}
	takeover_done();
	takeover_stay(SOCK);
}
