/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generated SECONDS: runs code that it writes itself, which keeps frame
 * pointers, from code that does not: in memory made executable, in memory moved
 * elsewhere (which no record tells), and in a memfd. A third of the time each.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define LOOPS      1000000

typedef void spin_fn(uint64_t loops);

/* push rbp; mov rbp,rsp; mov rcx,rdi; 1: dec rcx; jnz 1b; pop rbp; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* noipa: equal functions would become one. */
#define CALLER(name)                                                       \
	__attribute__((noipa)) static void name(spin_fn *spin, double end) \
	{                                                                  \
		while (cpu_seconds() < end)                                \
			spin(LOOPS);                                       \
	}
CALLER(from_memory)
CALLER(from_moved)
CALLER(from_memfd)

static void *in_memory(void)
{
	void *at = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(at, code, sizeof(code));
	return mprotect(at, PAGE_BYTES, PROT_READ | PROT_EXEC) ? NULL : at;
}

static void *moved(void *from)
{
	void *to = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mremap(from, PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

static void *in_memfd(void)
{
	int fd = memfd_create("generated", MFD_CLOEXEC);

	if (ftruncate(fd, PAGE_BYTES) || pwrite(fd, code, sizeof(code), 0) != sizeof(code))
		return MAP_FAILED;
	return mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
}

int main(int argc, char **argv)
{
	double third = (argc > 1 ? atof(argv[1]) : 3) / 3, began = cpu_seconds();
	void *at = in_memory();

	from_memory((spin_fn *)at, began + third);
	at = moved(at);
	from_moved((spin_fn *)at, began + 2 * third);
	at = in_memfd();
	if (at == MAP_FAILED)
		return 1;
	from_memfd((spin_fn *)at, began + 3 * third);
	return 0;
}
