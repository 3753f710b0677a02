/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that is profiled: a process in which a file of the silent file
 * system lies, and which needs nothing of that file any more while it uses CPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hang.h"

#define PAGE_BYTES 4096
#define BURN_NS	   10000000

static volatile uint64_t sink;
static char padding[4 * PAGE_BYTES];

_Noreturn static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline, noclone)) static void burn_hang(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	do
		for (int i = 0; i < 10000; i++)
			sink += (uint64_t)i * sink + 1;
	while (now_ns() < end);
}

static void use_share(unsigned share, uint64_t burn_ns)
{
	const struct timespec rest = { .tv_nsec = (long)((share - 1) % 64 * BURN_NS) };

	burn_hang(burn_ns);
	if (share > 1)
		nanosleep(&rest, NULL);
}

/* Whatever is needed later is run once before, while the file system still answers. */
static int spin(unsigned share)
{
	char byte = '.';

	use_share(share, 1);
	if (write(STDOUT_FILENO, &byte, 1) != 1)
		return 1;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (;;)
		use_share(share, BURN_NS);
}

/* A page that holds nothing but padding becomes one of the file, which was never read. */
static void map_over(const char *pad, const char *path)
{
	uintptr_t at = ((uintptr_t)pad + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || strlen(pad) < sizeof(padding) - 16)
		fail(path);
	if (mmap((void *)at, 2 * PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		fail("mmap");
	close(fd);
}

/* hang victim PADDING SHARE [FILE]; the padding comes first, because only the first page of arguments is read. */
int victim_main(int argc, char **argv)
{
	const char *pad = argc > 2 && argv[2][0] ? argv[2] : getenv("PAD");
	unsigned share = argc > 3 ? (unsigned)atoi(argv[3]) : 1;

	if (argc > 4)
		map_over(pad, argv[4]);
	return spin(share);
}

static char *padded(const char *head)
{
	memset(padding, 'x', sizeof(padding) - 1);
	memcpy(padding, head, strlen(head));
	return padding;
}

_Noreturn void victim_exec(enum how how, const char *self, const char *file, int fd, unsigned share)
{
	char number[16], name[] = "hang", victim[] = "victim", none[] = "";
	char *argv[] = { name, victim, none, number, NULL, NULL };
	char *envp[] = { NULL, NULL };

	snprintf(number, sizeof(number), "%u", share);
	if (how == HOW_ARGUMENTS)
		argv[2] = padded("");
	if (how == HOW_ENVIRONMENT)
		envp[0] = padded("PAD=");
	if (how == HOW_ARGUMENTS || how == HOW_ENVIRONMENT)
		argv[4] = (char *)(uintptr_t)file;
	if (how == HOW_PASS)
		syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	else
		execve(how == HOW_RUN ? file : self, argv, envp);
	fail("exec");
}
