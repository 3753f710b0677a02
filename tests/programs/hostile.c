/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is unpleasant to look at.
 *   hostile map FILE SECONDS  runs the code at offset 256 of FILE, which it
 *       maps; says "ready" and waits for a line before it starts, so that
 *       FILE may be swapped for something else meanwhile
 *   hostile environ SECONDS   lets its environment lie in a page that nobody
 *       ever fills (userfaultfd), then uses CPU
 * Exit code 77: this kernel does not let it.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CODE_AT   256
#define PAGE_BYTES 4096
#define SKIP      77

typedef void spin_fn(uint64_t loops);

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int ready(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 0 : 1;
}

static int map(const char *path, double seconds)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *code = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	spin_fn *spin;

	if (fd < 0 || code == MAP_FAILED) {
		perror(path);
		return 1;
	}
	close(fd);
	spin = (spin_fn *)(uintptr_t)(code + CODE_AT);
	spin(1);
	if (ready())
		return 1;
	while (cpu_seconds() < seconds)
		spin(1000000);
	return 0;
}

/* A page in place of the one at this address: its first access waits for us, and we never answer. */
static int page_of_silence(uintptr_t at)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *page = mmap((void *)at, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return -1;
	range.range.start = at;
	range.range.len = PAGE_BYTES;
	return ioctl(fd, UFFDIO_REGISTER, &range);
}

/* Starts anew with an environment so large that a whole page of the stack is nothing else. */
static int with_padding(char **argv)
{
	static char pad[4 * PAGE_BYTES] = "PAD=";
	char *envp[] = { pad, NULL };

	memset(pad + 4, 'x', sizeof(pad) - 5);
	execve("/proc/self/exe", argv, envp);
	return 1;
}

static int silent_environ(char **argv, double seconds)
{
	const char *pad = getenv("PAD");
	volatile uint64_t sink = 0;
	uint64_t i;

	if (!pad || strlen(pad) < 3 * PAGE_BYTES)
		return with_padding(argv);
	if (page_of_silence(((uintptr_t)pad + PAGE_BYTES) & ~(uintptr_t)(PAGE_BYTES - 1))) {
		perror("userfaultfd");
		return SKIP;
	}
	if (ready())
		return 1;
	while (cpu_seconds() < seconds)
		for (i = 0; i < 1000000; i++)
			sink += i;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "map") == 0)
		return map(argv[2], atof(argv[3]));
	if (argc == 3 && strcmp(argv[1], "environ") == 0)
		return silent_environ(argv, atof(argv[2]));
	fprintf(stderr, "usage: hostile map FILE SECONDS | environ SECONDS\n");
	return 2;
}
