// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of an interpreter as its plan and decoder see them, without a sampler:
 *   interpreted PID [SAMPLES [HZ]]
 * Stops a thread of the process at random moments (ptrace), walks as a sampler
 * does, decodes, and prints a line for each sample: frames from the outermost,
 * "name file:line", ENTRY frames marked with ^, native ones with *, hidden ones
 * with -; at the end of the line how the walk ended.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t target;

static int read_user(void *to, size_t len, uint64_t from)
{
	struct iovec here = {to, len}, there = {(void *)(uintptr_t)from, len};

	return process_vm_readv(target, &here, 1, &there, 1, 0) == (ssize_t)len ? 0 : -1;
}

#include <linux/types.h>
#define OTP_WALK_READ(to, len, from) read_user(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "runtime/runtime.h"

#define THREADS_MAX 64
#define CACHE_MAX   4096

struct cached {
	struct runtime_frame f;
	int err;
	struct runtime_function *function;
};

static struct cached cache[CACHE_MAX];
static size_t nr_cached;
static struct runtime_attached attached;
static const struct runtime_ops *ops;
static struct memory_fd memory;
static struct otp_walker walker;

/* --- attaching --- */

static uint64_t bias_of(struct binary *b, uint64_t start, uint64_t offset)
{
	uint64_t vaddr;

	return binary_offset_to_vaddr(b, offset, &vaddr) ? start - vaddr : 0;
}

/* 0: this mapping's file holds a runtime, and it is attached. */
static int attach_file(const char *path, uint64_t start, uint64_t end, uint64_t offset)
{
	char link[128], why[RUNTIME_WHY_MAX] = "";
	struct runtime_file file = {0};
	int fd, r;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", target, (unsigned long long)start, (unsigned long long)end);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || binary_open(fd, path, &file.binary) < 0)
		return -ENOENT;
	r = runtime_of_file(file.binary);
	if (r >= 0) {
		ops = runtime_list[r];
		file.bias = bias_of(file.binary, start, offset);
		memory_question(&memory.memory);
		attached = (struct runtime_attached){0};
		r = ops->attach(&file, &memory.memory, &attached, why);
		attached.runtime = (uint32_t)runtime_of_file(file.binary);
		printf("# %s in %s at bias %llx: %s %s %s\n", ops->name, path, (unsigned long long)file.bias,
		       r ? strerror(-r) : "version", attached.version, why);
		for (uint32_t i = 0; i < attached.nr_loops; i++)
			printf("# loop at %llx\n", (unsigned long long)(attached.loop[i] - file.bias));
	}
	binary_put(file.binary);
	return r;
}

static int attach(void)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char line[4400], path[4096], perms[8];
	unsigned long long start, end, offset;

	snprintf(path, sizeof(path), "/proc/%d/maps", target);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %4095s", &start, &end, perms, &offset, path) == 5 &&
		    perms[2] == 'x' && path[0] == '/' && attach_file(path, start, end, offset) == 0)
			return 0;
	return -ENOENT;
}

/* --- functions --- */

static bool same(const struct runtime_frame *a, const struct runtime_frame *b)
{
	return a->key == b->key && !memcmp(a->cookie, b->cookie, sizeof(a->cookie));
}

static const struct cached *function_of(const struct runtime_frame *f)
{
	struct cached *c;

	for (size_t i = 0; i < nr_cached; i++)
		if (same(&cache[i].f, f))
			return &cache[i];
	if (nr_cached == CACHE_MAX)
		nr_cached = 0;
	c = &cache[nr_cached++];
	free(c->function);
	*c = (struct cached){.f = *f, .function = calloc(1, sizeof(*c->function))};
	memory_question(&memory.memory);
	c->err = c->function ? ops->decode(&attached, &memory.memory, f, c->function) : -ENOMEM;
	return c;
}

static uint32_t line_of(const struct runtime_function *fn, const struct runtime_frame *f)
{
	uint32_t line = 0;

	if (f->flags & RUNTIME_LINE)
		return f->position;
	for (uint32_t i = 0; i < fn->nr_lines && fn->lines[i].position <= f->position; i++)
		line = fn->lines[i].line;
	return line;
}

/* --- samples --- */

static void print_frame(const struct runtime_words *w)
{
	struct runtime_frame f = {0};
	const struct cached *c;
	const char *slash;
	int r = ops->frame(&attached, w, &f);

	if (r < 0) {
		printf("[bad frame %llx: %d];", (unsigned long long)w->address, r);
		return;
	}
	printf("%s%s%s", f.flags & RUNTIME_ENTRY ? "^" : "", f.flags & RUNTIME_NATIVE ? "*" : "",
	       f.flags & RUNTIME_HIDDEN ? "-" : "");
	if (!f.key) {
		printf(";");
		return;
	}
	c = function_of(&f);
	slash = c->err ? NULL : strrchr(c->function->file, '/');
	if (c->err)
		printf("[%s];", strerror(-c->err));
	else
		printf("%s %s:%u;", c->function->name, slash ? slash + 1 : c->function->file, line_of(c->function, &f));
}

static void print_walk(const struct otp_regs *regs)
{
	const struct otp_walk *p = &attached.walk;
	uint32_t words = otp_walk_frame_words(p), root = otp_walk_count(p->root_keep);
	static const char *const ends[] = {
#define X(number, NAME, name, text) name,
		OTP_WALK_ENDS(X)
#undef X
	};

	for (uint32_t i = walker.frames; i-- > 0;) {
		const uint64_t *at = (const void *)&walker.out[2 + root + i * words];
		struct runtime_words w = {.address = *at & OTP_WALK_ADDRESS, .missing = (uint32_t)(*at >> 56),
					  .count = words - 1, .word = at + 1, .root = (const void *)&walker.out[2],
					  .nr_root = root, .index = i, .nr_outer = walker.frames - 1 - i, .regs = regs,
					  .last = i + 1 == walker.frames && walker.end == OTP_WALK_END_DONE,
					  .arch = OTP_ARCH_X86_64};

		print_frame(&w);
	}
	printf(" %s %u\n", ends[walker.end], walker.frames);
}

static void walk(uint64_t tls)
{
	otp_walk_prepare(&walker.ready, &attached.walk);
	walker.taken = 0;
	otp_walk_run(&walker, tls, 1, 0);
}

#ifdef __x86_64__
static void sample(pid_t tid)
{
	uint64_t to[1 + OTP_REGS_X86_64] = {(1 << OTP_REGS_X86_64) - 1}; /* struct otp_regs */
	struct user_regs_struct u;
	struct iovec io = {&u, sizeof(u)};
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return;
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) == 0) {
		const uint64_t regs[OTP_REGS_X86_64] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
							u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip};

		memcpy(to + 1, regs, sizeof(regs));
		walk(u.fs_base);
		print_walk((const void *)to);
	}
	/* A stop by a signal: pass it on. */
	ptrace(PTRACE_CONT, tid, NULL,
	       (void *)(intptr_t)(status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status)));
}
#endif

static size_t threads(pid_t *to)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *e;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", target);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && n < THREADS_MAX)
		if (atoi(e->d_name) > 0 && ptrace(PTRACE_SEIZE, atoi(e->d_name), NULL, NULL) == 0)
			to[n++] = atoi(e->d_name);
	return n;
}

int main(int argc, char **argv)
{
	long samples = argc > 2 ? atol(argv[2]) : 100, hz = argc > 3 ? atol(argv[3]) : 97;
	pid_t tid[THREADS_MAX];
	char path[64];
	size_t n;

	target = argc > 1 ? atoi(argv[1]) : 0;
	if (target <= 0 || hz <= 0) {
		fprintf(stderr, "usage: interpreted PID [SAMPLES [HZ]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", target);
	memory_fd_init(&memory, open(path, O_RDONLY | O_CLOEXEC));
	if (attach() < 0) {
		fprintf(stderr, "interpreted: no runtime that is known\n");
		return 1;
	}
	n = threads(tid);
	for (long i = 0; n && i < samples; i++) {
		usleep((useconds_t)(500000 / hz + random() % (1000000 / hz)));
		sample(tid[(size_t)i % n]);
	}
	return n ? 0 : 1;
}
