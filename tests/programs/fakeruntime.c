// SPDX-License-Identifier: Apache-2.0
/*
 * Pretends to run PHP 8.2: has the symbols by which an interpreter is known, and
 * memory that looks like its own but for one thing.
 *   fakeruntime loop SECONDS     the list of frames leads back to its beginning
 *   fakeruntime nowhere SECONDS  frames and functions point to no memory
 *   fakeruntime change SECONDS   a second thread changes all words all the time
 *   fakeruntime names SECONDS    a million functions, with names of a megabyte
 *   fakeruntime silent SECONDS   names lie in a page whose first access is never
 *                                answered (userfaultfd)
 * Uses CPU time in execute_ex. Exit status 77: this kernel does not allow it.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SKIP 77
#define PAGE_BYTES 4096
#define FUNCTIONS 1000000ULL
#define NAME_BYTES (1 << 20)
/* Offsets of PHP 8.2. */
#define CURRENT 488
#define FUNCTION_WORDS 24
#define FUNCTION_NAME 1
#define FUNCTION_LAST 10
#define FUNCTION_OPCODES 11
#define FUNCTION_FILENAME 19
#define STRING_TYPE 6

struct frame { uint64_t opline, call, result, function, object, info, previous; uint64_t slots[3]; };

uint64_t executor_globals[512];
struct { uint64_t pad[2]; void *buckets; uint32_t used; } module_registry;

static struct { uint64_t word[21]; } module;
static uint64_t bucket[4];
static struct frame frames[16];
static uint64_t function[FUNCTION_WORDS];
static uint64_t opcodes[64];
static uint64_t *name;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The loop of the interpreter. */
__attribute__((noinline)) void execute_ex(uint64_t rounds)
{
	volatile uint64_t sink = 0;

	for (uint64_t i = 0; i < rounds; i++)
		sink += i;
}

static void make_module(void)
{
	uint8_t *at = (uint8_t *)&module;
	static const uint16_t size = sizeof(module);
	static const uint32_t api = 20220829;

	memcpy(at, &size, sizeof(size));
	memcpy(at + 4, &api, sizeof(api));
	module.word[4] = (uintptr_t)"standard";
	module.word[11] = (uintptr_t)"8.2.0";
	bucket[0] = (uintptr_t)&module;
	module_registry.buckets = bucket;
	module_registry.used = 1;
}

static void make_string(uint64_t *at, uint64_t len)
{
	at[0] = (uint64_t)STRING_TYPE << 32 | 1;
	at[1] = len > PAGE_BYTES ? 1ULL << 63 | len : 0; /* nobody reads so long a string to compute its hash */
	at[2] = len;
	memset(at + 3, 'x', len);
}

static void make_function(uint64_t *at, uint64_t *its_name)
{
	at[0] = 2;
	at[FUNCTION_NAME] = (uintptr_t)its_name;
	at[FUNCTION_LAST] = 4;
	at[FUNCTION_OPCODES] = (uintptr_t)opcodes;
	at[FUNCTION_FILENAME] = (uintptr_t)its_name;
}

static void make_frames(void)
{
	for (size_t i = 0; i < 16; i++)
		frames[i] = (struct frame){.opline = (uintptr_t)opcodes, .function = (uintptr_t)function,
					   .previous = i < 15 ? (uintptr_t)&frames[i + 1] : 0};
	frames[15].info = 1u << 17;
	executor_globals[CURRENT / 8] = (uintptr_t)frames;
}

static int page_of_silence(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	name = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || name == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return -1;
	range.range.start = (uintptr_t)name;
	range.range.len = PAGE_BYTES;
	return ioctl(fd, UFFDIO_REGISTER, &range);
}

static void *change(void *ctx)
{
	unsigned seed = 1;

	for (;;) {
		uint64_t *words = rand_r(&seed) & 1 ? (uint64_t *)frames : function;
		size_t nr = words == function ? FUNCTION_WORDS : sizeof(frames) / 8;
		volatile uint64_t *at = &words[(size_t)rand_r(&seed) % nr];
		uint64_t before = *at;

		*at = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);
		for (volatile int i = 0; i < 1000; i++)
			;
		*at = before;
	}
	return NULL;
}

/* Each one has other opcodes, so that it is another function. */
static void next_function(void)
{
	static uint64_t nr;

	function[FUNCTION_OPCODES] = (uintptr_t)opcodes + 8 * (nr++ % FUNCTIONS);
}

static int prepare(const char *mode)
{
	pthread_t thread;

	if (strcmp(mode, "silent") == 0 && page_of_silence())
		return SKIP;
	if (strcmp(mode, "silent")) {
		name = malloc(NAME_BYTES + 64);
		make_string(name, strcmp(mode, "names") ? 8 : NAME_BYTES);
	}
	make_module();
	make_function(function, name);
	make_frames();
	if (strcmp(mode, "loop") == 0)
		frames[15].previous = (uintptr_t)frames;
	if (strcmp(mode, "nowhere") == 0) {
		frames[2].function = 0x4141414140;
		frames[4].previous = 0x10;
		function[FUNCTION_NAME] = 0x7fffffff0000;
	}
	return strcmp(mode, "change") == 0 ? pthread_create(&thread, NULL, change, NULL) : 0;
}

int main(int argc, char **argv)
{
	double end = seconds() + (argc == 3 ? atof(argv[2]) : 0);
	int err;

	if (argc != 3)
		return 2;
	err = prepare(argv[1]);
	if (err)
		return err;
	while (seconds() < end) {
		if (strcmp(argv[1], "names") == 0)
			next_function();
		execute_ex(100000);
	}
	return 0;
}
