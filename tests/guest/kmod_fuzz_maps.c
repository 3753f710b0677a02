// SPDX-License-Identifier: Apache-2.0
/*
 * Views mapped, moved, cut, locked, inherited and written to by every way that
 * there is, while samples come and the reader's position is a lie. Only the
 * reader's page may ever take a write.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod_stress.h"

#define PAGE	   4096u
#define RING_BYTES (1u << 16)
#define RING_PAGES (2 + 2 * RING_BYTES / PAGE)
#define SLOTS	   8
#define ENOUGH	   50 /* steps, however slow the kernel */
#define MORE_MS	   60000
#define MEMORY_ADVICE_END 26 /* beyond it begin those that poison pages */

struct slot {
	uint8_t *at; /* NULL: free */
	size_t pages;
	bool readers_page;
};

struct maps {
	struct owner *o;
	struct slot slot[SLOTS];
	struct rng rng;
	int mem; /* /proc/self/mem */
	unsigned long steps, written; /* written: where nothing may be */
};

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static bool stored(volatile uint8_t *at)
{
	if (sigsetjmp(back, 1) != 0)
		return false;
	*at = *at;
	return true;
}

static void loaded(volatile const uint8_t *at)
{
	if (sigsetjmp(back, 1) == 0)
		(void)*at;
}

static void map_some(struct maps *m, struct slot *s)
{
	static const int flags[] = {MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_POPULATE,
				    MAP_SHARED | MAP_LOCKED, MAP_SHARED_VALIDATE | MAP_SYNC, MAP_PRIVATE | MAP_GROWSDOWN,
				    MAP_SHARED | MAP_HUGETLB};
	bool ring = rng_next(&m->rng) % 4;
	size_t first = rng_next(&m->rng) % 3 ? rng_next(&m->rng) % 4 : rng_next(&m->rng) % (RING_PAGES + 2);
	size_t pages = rng_next(&m->rng) % 2 ? 1 + rng_next(&m->rng) % 2 : rng_next(&m->rng) % (RING_PAGES + 2);
	int flag = flags[rng_next(&m->rng) % (sizeof(flags) / sizeof(flags[0]))];
	int prot = rng_next(&m->rng) % 2 ? PROT_READ : (int)(rng_next(&m->rng) % 8);
	void *at = mmap(NULL, pages * PAGE, prot, flag, ring ? m->o->ring : m->o->counters, (off_t)(first * PAGE));

	if (at == MAP_FAILED)
		return;
	*s = (struct slot){at, pages, ring && first == 0 && pages == 1};
	if (flag & MAP_PRIVATE || first + pages > (ring ? RING_PAGES : 1) || prot & PROT_EXEC ||
	    (prot & PROT_WRITE && !s->readers_page)) {
		printf("# mapped: ring %d, page %zu, %zu pages, protection %d, flags %#x\n", ring, first, pages, prot, flag);
		m->written++;
	}
}

/* Every way to write there is, to a place that is mapped, or was. */
static void write_some(struct maps *m, const struct slot *s)
{
	uint8_t *at = s->at + rng_next(&m->rng) % (s->pages * PAGE);
	struct iovec from = {"y", 1}, to = {at, 1};
	bool done = false;
	int zero;

	switch (rng_next(&m->rng) % 4) {
	case 0:
		done = stored(at);
		break;
	case 1:
		done = pwrite(m->mem, "x", 1, (off_t)(uintptr_t)at) == 1;
		break;
	case 2:
		done = process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 1;
		break;
	default:
		zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		done = read(zero, at, 1) == 1;
		close(zero);
	}
	if (done && !s->readers_page) {
		printf("# written at page %zu of a mapping of %zu\n", (size_t)(at - s->at) / PAGE, s->pages);
		m->written++;
	}
}

static void protect_some(struct maps *m, const struct slot *s)
{
	size_t first = rng_next(&m->rng) % s->pages, n = 1 + rng_next(&m->rng) % (s->pages - first);
	int prot = (int)(rng_next(&m->rng) % 8);

	if (mprotect(s->at + first * PAGE, n * PAGE, prot) == 0 &&
	    ((prot & PROT_EXEC) || ((prot & PROT_WRITE) && !s->readers_page))) {
		printf("# protection %d was allowed\n", prot);
		m->written++;
	}
}

static void move_some(struct maps *m, struct slot *s)
{
	size_t old = rng_next(&m->rng) % (s->pages + 1), new = rng_next(&m->rng) % (s->pages + 3);
	void *at = mremap(s->at, old * PAGE, new * PAGE, rng_next(&m->rng) % 2 ? MREMAP_MAYMOVE : 0);

	if (at == MAP_FAILED)
		return;
	if (new > old) {
		printf("# grown from %zu to %zu of %zu pages\n", old, new, s->pages);
		m->written++;
	}
	if (at != s->at && old < s->pages)
		munmap(s->at + old * PAGE, (s->pages - old) * PAGE);
	*s = new ? (struct slot){at, new, s->readers_page} : (struct slot){0};
}

static void inherit_some(const struct slot *s)
{
	pid_t pid;

	madvise(s->at, s->pages * PAGE, MADV_DOFORK);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < s->pages; i++)
			loaded(s->at + i * PAGE);
		_exit(stored(s->at) && !s->readers_page);
	}
	waitpid(pid, NULL, 0);
}

static void treat_some(struct maps *m, const struct slot *s)
{
	size_t first = rng_next(&m->rng) % s->pages, n = 1 + rng_next(&m->rng) % (s->pages - first);
	uint8_t *at = s->at + first * PAGE;
	unsigned char resident[RING_PAGES + 2];

	switch (rng_next(&m->rng) % 6) {
	case 0:
		madvise(at, n * PAGE, (int)(rng_next(&m->rng) % MEMORY_ADVICE_END));
		break;
	case 1:
		mlock(at, n * PAGE);
		break;
	case 2:
		munlock(at, n * PAGE);
		break;
	case 3:
		msync(at, n * PAGE, MS_SYNC | (rng_next(&m->rng) % 2 ? MS_INVALIDATE : 0));
		break;
	case 4:
		mincore(at, n * PAGE, resident);
		break;
	default:
		loaded(at);
	}
}

static void unmap_some(struct maps *m, struct slot *s)
{
	size_t first = rng_next(&m->rng) % s->pages;

	if (s->pages > 2 && rng_next(&m->rng) % 2) { /* a hole; what is left goes at the end */
		munmap(s->at + first * PAGE, PAGE);
		return;
	}
	munmap(s->at, s->pages * PAGE);
	*s = (struct slot){0};
}

static void lie(struct maps *m)
{
	uint64_t seen = owner_seen(m->o), any = rng_next(&m->rng);

	owner_release(m->o, any % 4 == 0 ? any : any % 4 == 1 ? seen + any % 200000 - 100000 : seen);
}

static void step(struct maps *m)
{
	struct slot *s = &m->slot[rng_next(&m->rng) % SLOTS];

	if (!s->at) {
		map_some(m, s);
		return;
	}
	switch (rng_next(&m->rng) % 10) {
	case 0 ... 2:
		write_some(m, s);
		break;
	case 3 ... 4:
		protect_some(m, s);
		break;
	case 5:
		move_some(m, s);
		break;
	case 6:
		treat_some(m, s);
		break;
	case 7:
		if (rng_next(&m->rng) % 8 == 0)
			inherit_some(s);
		break;
	case 8:
		unmap_some(m, s);
		break;
	default:
		lie(m);
	}
}

static bool fuzz(struct owner *o, unsigned long ms)
{
	struct maps m = {.o = o, .rng = rng_new(), .mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC)};
	uint64_t end = now_ms() + ms, last = 0;
	bool rises = true, good;

	for (; now_ms() < end || (m.steps < ENOUGH && now_ms() < end + MORE_MS); m.steps++) {
		uint64_t seen = owner_seen(o);

		rises = rises && seen >= last && seen % 8 == 0;
		last = seen;
		step(&m);
	}
	close(m.mem);
	for (int i = 0; i < SLOTS; i++)
		if (m.slot[i].at)
			munmap(m.slot[i].at, m.slot[i].pages * PAGE);
	good = fact(m.written == 0 && m.steps >= ENOUGH, "%lu steps with mapped views: %lu wrong", m.steps, m.written);
	return fact(rises && last > 0, "what the reader is shown only ever rose, to %llu bytes", (unsigned long long)last) &&
	       good;
}

bool fuzz_maps(unsigned long ms)
{
	struct otprof_config c = config_good(1999, RING_BYTES);
	struct sigaction act = {.sa_handler = on_fault}, segv, bus;
	struct owner o;
	int err = owner_open(&o, &c);
	bool good;

	sigaction(SIGSEGV, &act, &segv);
	sigaction(SIGBUS, &act, &bus);
	good = err == 0 ? fuzz(&o, ms) : fact(false, "a sampler whose views are mapped: %s", strerror(-err));
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	owner_close(&o);
	return fact(owner_works(), "after them it samples") && good;
}
