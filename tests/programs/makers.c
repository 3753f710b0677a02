/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makers SECONDS: calls code that it writes itself from functions of four
 * kinds: without a frame pointer, with one, with a stack of a size known only
 * at run time, and through a function that jumps to the code. The code is of
 * some kinds too: a loop without a frame, one below a kilobyte that it never
 * writes, one that saves the registers that calls preserve and uses the frame
 * pointer as its counter, one with a frame pointer, one that calls back, and one
 * that calls the first.
 * Before each call, return addresses of another chain of calls are left where the
 * code's frame will be. KIND_CODE calls the code, outer_KIND_CODE calls that; so
 * each stack is known from its leaf to main.
 */
#include <alloca.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LOOPS  200000
#define ROUNDS 16

typedef void code_fn(uint64_t loops, void (*back)(void));

static const uint8_t leaf[] = {
	0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3, /* mov rcx,rdi; 1: dec rcx; jnz 1b; ret */
};
static const uint8_t locals[] = {
	0x48, 0x81, 0xec, 0x08, 0x04, 0, 0,	       /* sub rsp,0x408 */
	0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, /* mov rcx,rdi; 1: dec rcx; jnz 1b */
	0x48, 0x81, 0xc4, 0x08, 0x04, 0, 0, 0xc3,      /* add rsp,0x408; ret */
};
static const uint8_t saves[] = {
	0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x48, 0x83, 0xec, 0x48, /* push rbp, rbx, r12, r13; sub rsp,0x48 */
	0x48, 0x89, 0xfd, 0x48, 0xff, 0xcd, 0x75, 0xfb,	    /* mov rbp,rdi; 1: dec rbp; jnz 1b */
	0x48, 0x83, 0xc4, 0x48, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3,
};
static const uint8_t frame[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40, /* push rbp; mov rbp,rsp; sub rsp,0x40 */
	0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc9, 0xc3, /* ...; leave; ret */
};
static const uint8_t back[] = {
	0x53, 0x48, 0x89, 0xf3, 0x48, 0x81, 0xec, 0, 1, 0, 0,	/* push rbx; mov rbx,rsi; sub rsp,0x100 */
	0xff, 0xd3, 0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x5b, 0xc3, /* call rbx; add rsp,0x100; pop rbx; ret */
};
static const uint8_t inner[] = {
	0x48, 0x83, 0xec, 0x18, 0xe8, 0, 0, 0, 0, /* sub rsp,0x18; call of the first */
	0x48, 0x83, 0xc4, 0x18, 0xc3,
};

#define CODES(X) X(leaf) X(locals) X(saves) X(frame) X(back) X(inner)

static struct {
	code_fn *leaf, *locals, *saves, *frame, *back, *inner;
} volatile at;

static void (*volatile dirty_again)(int depth);
static volatile uint64_t sink;

__attribute__((noipa)) static void dirty(int depth)
{
	volatile char pad[24];

	pad[0] = 1;
	if (depth)
		dirty_again(depth - 1);
	sink += (uint64_t)pad[0];
}

__attribute__((noipa)) static void spin_back(void)
{
	for (int i = 0; i < LOOPS; i++)
		sink++;
}

#define KEEPS __attribute__((noipa, optimize("no-omit-frame-pointer")))
#define OMITS __attribute__((noipa))

/* By a jump, as its last call. */
OMITS static void jump_to(uint64_t loops, void (*back)(void), code_fn *code)
{
	code(loops, back);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#define CALLERS(code)                                           \
	OMITS static void plain_##code(double end)              \
	{                                                       \
		do {                                            \
			dirty(24);                              \
			at.code(LOOPS, spin_back);              \
		} while (cpu_seconds() < end);                  \
	}                                                       \
	KEEPS static void framed_##code(double end)             \
	{                                                       \
		do {                                            \
			dirty(24);                              \
			at.code(LOOPS, spin_back);              \
		} while (cpu_seconds() < end);                  \
	}                                                       \
	OMITS static void sized_##code(double end)              \
	{                                                       \
		volatile char *room = alloca(64 + (sink & 63)); \
                                                                \
		do {                                            \
			room[0]++;                              \
			dirty(24);                              \
			at.code(LOOPS, spin_back);              \
		} while (cpu_seconds() < end);                  \
	}                                                       \
	OMITS static void jumps_##code(double end)              \
	{                                                       \
		do {                                            \
			dirty(24);                              \
			jump_to(LOOPS, spin_back, at.code);     \
			sink++;                                 \
		} while (cpu_seconds() < end);                  \
	}                                                       \
	OMITS static void outer_jumps_##code(double end)        \
	{                                                       \
		jumps_##code(end);                              \
		sink++;                                         \
	}                                                       \
	OMITS static void outer_plain_##code(double end)        \
	{                                                       \
		plain_##code(end);                              \
		sink++;                                         \
	}                                                       \
	KEEPS static void outer_framed_##code(double end)       \
	{                                                       \
		framed_##code(end);                             \
		sink++;                                         \
	}                                                       \
	OMITS static void outer_sized_##code(double end)        \
	{                                                       \
		sized_##code(end);                              \
		sink++;                                         \
	}
CODES(CALLERS)

/* At a distance of n * 4096 in one region. */
static void *put(uint8_t *region, int n, const uint8_t *code, size_t len)
{
	return memcpy(region + 4096 * n, code, len);
}

static int make_code(void)
{
	uint8_t *region = mmap(NULL, 6 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int32_t distance = -5 * 4096 - 9; /* from behind the call of inner to leaf */
	int n = 0;

	if (region == MAP_FAILED)
		return -1;
#define PUT(code) at.code = (code_fn *)put(region, n++, code, sizeof(code));
	CODES(PUT)
	memcpy(region + 5 * 4096 + 5, &distance, sizeof(distance));
	return mprotect(region, 6 * 4096, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv)
{
	static void (*const parts[])(double) = {
#define PARTS(code) outer_plain_##code, outer_framed_##code, outer_sized_##code, outer_jumps_##code,
		CODES(PARTS)
	};
	const int nr = sizeof(parts) / sizeof(parts[0]), turns = nr * ROUNDS;
	double seconds = argc > 1 ? atof(argv[1]) : 5, began;

	dirty_again = dirty;
	if (make_code())
		return 1;
	began = cpu_seconds();
	for (int i = 0; i < turns; i++) {
		/* What earlier calls left lies elsewhere in the code's frame then. */
		if (i && i % nr == 0)
			*(volatile char *)alloca(16) = 0;
		parts[i % nr](began + seconds * (i + 1) / turns);
	}
	return 0;
}
