// SPDX-License-Identifier: Apache-2.0
/*
 * Calls to the device: structured and random, by several threads on the same
 * descriptors, by children that inherit them, by a stranger without rights who
 * was passed one, while others close and replace them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod_stress.h"

#define FDS	3 /* one place is left for who looks whether it still works */
#define THREADS 4
#define NOBODY	65534
#define ENOUGH	20    /* calls of a thread, however slow the kernel */
#define MORE_MS 60000

struct pool { /* descriptors that everybody uses, and somebody closes */
	int fd[FDS];
	uint64_t end_ms;
	unsigned long calls;
};

static const unsigned long known[] = {
	OTPROF_IOC_INFO, OTPROF_IOC_CONFIG, OTPROF_IOC_START, OTPROF_IOC_STOP, OTPROF_IOC_DEFAULTS, OTPROF_IOC_PLAN,
	OTPROF_IOC_HINT, OTPROF_IOC_RULE,   OTPROF_IOC_TIMES, OTPROF_IOC_VIEW, OTPROF_IOC_CPUS,
	OTPROF_IOC_PERIOD, OTPROF_IOC_WALKS,
};

union argument {
	struct otprof_config config;
	struct otprof_set_plan plan;
	struct otprof_set_walks walks;
	struct otprof_set_hint hint;
	struct otprof_set_rule rule;
	struct otp_defaults defaults;
	uint64_t word[2048 / 8];
};

/* Numbers at which something ends. */
static uint64_t edge(struct rng *r)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 63, 4095, 4096, 1 << 16, 1 << 19, 1u << 30, 1u << 31, ~0u, 1ull << 32,
					 1ull << 47, ~0ull >> 1, ~0ull};

	return edges[rng_next(r) % (sizeof(edges) / sizeof(edges[0]))] + (rng_next(r) % 4 ? 0 : rng_next(r) % 3 - 1);
}

/* What could be meant, with now and then a word that nobody meant. */
static void make_argument(union argument *a, unsigned long request, struct rng *r)
{
	memset(a, 0, sizeof(*a));
	if (request == OTPROF_IOC_CONFIG)
		a->config = config_good(1 + rng_next(r) % 5000, 4096u << rng_next(r) % 8);
	else if (request == OTPROF_IOC_PERIOD)
		a->word[0] = 1000000 * (1 + rng_next(r) % 1100);
	else if (request == OTPROF_IOC_DEFAULTS)
		a->defaults = config_good(1, 4096).defaults;
	else
		a->word[0] = 1 + rng_next(r) % 2;
	if (request == OTPROF_IOC_CONFIG) {
		a->config.flags = rng_next(r) % 8 ? 0 : rng_next(r) % 4; /* tracepoints take their time */
		a->config.walks_max = rng_next(r) % 2 * 64;
	}
	if (request == OTPROF_IOC_PLAN) {
		a->plan.pid = rng_next(r) % 2 ? (uint32_t)getpid() : (uint32_t)rng_next(r) % 1000;
		a->plan.plan = (struct otp_plan){.generation = 1, .any_exec = 1, .stack_bytes = (uint32_t)edge(r),
						 .flags = rng_next(r) % 2 ? OTP_PLAN_WALK : 0};
	}
	if (request == OTPROF_IOC_WALKS) {
		a->walks.pid = rng_next(r) % 2 ? (uint32_t)getpid() : (uint32_t)rng_next(r) % 1000;
		a->walks.walks = walks_any(r, edge(r));
	}
	for (unsigned int n = rng_next(r) % 3 ? 0 : 1 + rng_next(r) % 4; n; n--)
		a->word[rng_next(r) % (sizeof(struct otprof_config) / 8)] = edge(r);
}

static void look_at_view(int fd)
{
	void *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);

	poll(&(struct pollfd){.fd = fd, .events = POLLIN | POLLOUT}, 1, 0);
	if (p != MAP_FAILED)
		munmap(p, 8192);
	close(fd);
}

static void call_structured(int fd, struct rng *r)
{
	unsigned long request = known[rng_next(r) % (sizeof(known) / sizeof(known[0]))];
	union argument a;
	int n;

	if (request == OTPROF_IOC_VIEW) {
		n = ioctl(fd, request, rng_next(r) % 4 ? 1 + rng_next(r) % 2 : edge(r));
		if (n > 2)
			look_at_view(n);
		return;
	}
	make_argument(&a, request, r);
	ioctl(fd, request, &a);
}

/* Any number, and any address: good ones, none, the kernel's, the last bytes of a page. */
static void call_random(int fd, struct rng *r)
{
	static char *page;
	unsigned long nr = rng_next(r) % 16, size = rng_next(r) % 2 ? rng_next(r) % 2048 : rng_next(r) % 64;
	union argument a;
	void *at = &a;

	if (!page) {
		char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(two + 4096, 4096);
		page = two;
	}
	for (unsigned int i = 0; i < sizeof(a.word) / 8; i++)
		a.word[i] = rng_next(r) % 2 ? 0 : rng_next(r);
	switch (rng_next(r) % 4) {
	case 0:
		at = page + 4096 - rng_next(r) % 128;
		break;
	case 1:
		at = (void *)(uintptr_t)(0xffff800000000000ull + rng_next(r) % (1ull << 46));
		break;
	case 2:
		at = (void *)(uintptr_t)edge(r);
	}
	if (nr == _IOC_NR(OTPROF_IOC_VIEW))
		return; /* what it returns has to be closed: the other one does that */
	ioctl(fd, rng_next(r) % 2 ? _IOC(rng_next(r) % 4, OTPROF_IOC_MAGIC, nr, size) : (unsigned long)rng_next(r), at);
}

static void no_call(int fd, struct rng *r)
{
	char bytes[64];
	struct pollfd p = {.fd = fd, .events = (short)rng_next(r)};

	switch (rng_next(r) % 6) {
	case 0:
		if (read(fd, bytes, sizeof(bytes)) > 0)
			abort();
		break;
	case 1:
		if (write(fd, bytes, sizeof(bytes)) > 0)
			abort();
		break;
	case 2:
		lseek(fd, (off_t)rng_next(r), SEEK_SET);
		break;
	case 3:
		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
			abort(); /* the device itself cannot be mapped */
		break;
	case 4:
		fcntl(fd, F_SETFL, rng_next(r) % 2 ? O_NONBLOCK | O_ASYNC : 0);
		break;
	default:
		poll(&p, 1, 0);
	}
}

/* A descriptor is closed and another one put in its place, which may be a copy of its neighbour. */
static void replace(struct pool *p, struct rng *r)
{
	unsigned int i = (unsigned int)(rng_next(r) % FDS);
	int old = __atomic_exchange_n(&p->fd[i], -1, __ATOMIC_SEQ_CST), new;

	if (old >= 0)
		close(old);
	new = rng_next(r) % 3 ? dev_new() : dup(p->fd[(i + 1) % FDS]);
	old = __atomic_exchange_n(&p->fd[i], new, __ATOMIC_SEQ_CST);
	if (old >= 0)
		close(old);
}

static void *hammer(void *arg)
{
	struct pool *p = arg;
	struct rng r = rng_new();
	unsigned long calls = 0;

	r.x ^= (uint64_t)(uintptr_t)&r;
	for (; now_ms() < p->end_ms || (calls < ENOUGH && now_ms() < p->end_ms + MORE_MS); calls++) {
		int fd = p->fd[rng_next(&r) % FDS];

		switch (rng_next(&r) % 16) {
		case 0 ... 8:
			call_structured(fd, &r);
			break;
		case 9 ... 12:
			call_random(fd, &r);
			break;
		case 13 ... 14:
			no_call(fd, &r);
			break;
		default:
			replace(p, &r);
		}
	}
	__atomic_fetch_add(&p->calls, calls, __ATOMIC_SEQ_CST);
	return NULL;
}

static void send_fd(int to, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct msghdr msg = {.msg_iov = &(struct iovec){"x", 1}, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int receive_fd(int from)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control;
	char byte;
	struct msghdr msg = {.msg_iov = &(struct iovec){&byte, 1}, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) > 0 && msg.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

/* Opens nothing himself; uses what he is given, and dies now and then with some of it still on the way. */
static _Noreturn void stranger(int from)
{
	struct rng r = rng_new();
	unsigned int left = 50 + (unsigned int)(rng_next(&r) % 200);

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0 || dev_new() >= 0)
		_exit(1);
	for (; left; left--) {
		int fd = receive_fd(from);

		if (fd < 0)
			_exit(0);
		for (int i = 0; i < 20; i++)
			rng_next(&r) % 2 ? call_structured(fd, &r) : call_random(fd, &r);
		close(fd);
	}
	_exit(0);
}

/* An heir uses what its parent had and ends without a word. */
static _Noreturn void heir(const struct pool *p)
{
	struct rng r = rng_new();

	for (int i = 0; i < 30; i++)
		call_structured(p->fd[rng_next(&r) % FDS], &r);
	_exit(0);
}

/* True where no stranger could open the device. */
static bool give_and_bequeath(struct pool *p)
{
	struct rng r = rng_new();
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		stranger(pair[1]);
	}
	close(pair[1]);
	for (int i = 0; i < 100 && now_ms() < p->end_ms; i++) {
		send_fd(pair[0], p->fd[rng_next(&r) % FDS]);
		if (i % 10 == 0 && fork() == 0)
			heir(p);
		sleep_us(rng_next(&r) % 3000);
	}
	close(pair[0]);
	waitpid(pid, &status, 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* In a process of its own, which is what finally closes everything. */
static _Noreturn void fuzz(struct pool *p)
{
	pthread_t thread[THREADS];
	bool good = true;

	for (int i = 0; i < FDS; i++)
		p->fd[i] = dev_new();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, hammer, p);
	while (now_ms() < p->end_ms)
		good = give_and_bequeath(p) && good;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	_exit(good ? 0 : 1);
}

bool fuzz_calls(unsigned long ms)
{
	struct pool *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int status;
	bool good;

	p->end_ms = now_ms() + ms;
	pid = fork();
	if (pid == 0)
		fuzz(p);
	waitpid(pid, &status, 0);
	good = fact(WIFEXITED(status) && WEXITSTATUS(status) == 0 && p->calls >= THREADS * ENOUGH,
		    "%lu calls by %d threads, heirs and strangers without rights (status %#x)", p->calls, THREADS, status);
	munmap(p, sizeof(*p));
	return fact(owner_works(), "after them it samples") && good;
}
