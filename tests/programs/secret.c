/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a secret from its standard input and works with it on its stack: in
 * frames, below the stack pointer, in registers. "ready" says that it does.
 * What argv and the environment hold is for the test to look for too.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define noclone __attribute__((noinline, noipa))
#define COPIES	24

static volatile uint64_t sink;

/* Callee-saved registers hold pieces of it, and so does the red zone of a leaf. */
noclone static void secret_leaf(const uint64_t *words)
{
	register uint64_t a = words[0], b = words[1], c = words[2], d = words[3];

	for (int i = 0; i < 40000000; i++) {
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
		sink = sink * 2862933555777941757u + 3037000493u;
	}
	sink += a ^ b ^ c ^ d;
}

noclone static void secret_work(const char *secret, unsigned int depth)
{
	char copies[COPIES][32];
	uint64_t words[4];

	for (int i = 0; i < COPIES; i++)
		memcpy(copies[i], secret, 32);
	memcpy(words, secret, sizeof(words));
	__asm__ volatile("" : : "r"(copies) : "memory");
	if (depth)
		secret_work(secret, depth - 1);
	else
		secret_leaf(words);
	__asm__ volatile("" : : "r"(copies) : "memory");
}

int main(void)
{
	char secret[33];

	if (read(0, secret, 32) != 32)
		return 2;
	puts("ready");
	fflush(stdout);
	for (;;)
		secret_work(secret, 3);
}
