// SPDX-License-Identifier: Apache-2.0
/*
 * The root of a thread's frames, and the functions that run them.
 *
 * Up to 3.14 each thread keeps its PyThreadState in a slot of pthread_setspecific
 * (the key is autoTSSkey of _PyRuntime), whether it holds the GIL or not;
 * thread-local variables of the runtime hold it only with the GIL. Where slots lie
 * is the libc's own affair, so they are not computed but found: the runtime lists
 * its threads with their pthread_t, which is where libc keeps a thread's data.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/cpython.h"

#define INTERPRETERS_MAX 16 /* that are searched for a thread */
#define THREADS_MAX	 64 /* of each */
#define SEARCHES_MAX	 8  /* of lists that change meanwhile */
#define GLIBC_WORDS	 288 /* of struct pthread that hold its first slots and the table of blocks */
#define GLIBC_SLOTS	 32 /* of a block, and blocks of a thread */
#define GLIBC_BLOCK	 (GLIBC_SLOTS * 2) /* words: a slot is a sequence number and the value */
#define GLIBC_ARM64_FROM 0x400 /* where struct pthread may end, and the thread pointer begin */
#define GLIBC_ARM64_TO	 0xc00
#define GLIBC_DTV_MAX	 4096
#define MUSL_SLOTS	 128
#define MUSL_X86_64_TSD	 0x80 /* struct pthread, src/internal/pthread_impl.h, of 1.2 */
#define MUSL_ARM64_TSD	 0x70
#define MUSL_ARM64_SIZE	 0xc8
#define TLS_NEAR	 (64u << 10) /* the thread-local block of the program lies this near to the pointer */

/* --- slots --- */

static void slot_chain(struct otp_walk *walk, int64_t first, int64_t second)
{
	walk->start = OTP_WALK_TLS;
	walk->base = 0;
	walk->chain[0] = (int32_t)first;
	walk->nr_chain = 1;
	if (second >= 0)
		walk->chain[walk->nr_chain++] = (int32_t)second;
}

/* In use: sequence numbers of keys are odd then. */
static int slot_in_block(const uint64_t block[GLIBC_BLOCK], uint64_t state)
{
	for (int i = 0; i < GLIBC_SLOTS; i++)
		if (block[2 * i + 1] == state && (block[2 * i] & 1) && block[2 * i] <= UINT32_MAX)
			return i;
	return -1;
}

/* The table of blocks lies after the first block, and its first entry points there. Its index in words, or -1. */
static int glibc_table_find(const uint64_t *word, uint64_t self)
{
	for (int i = GLIBC_BLOCK; i < GLIBC_WORDS; i++)
		if (word[i] == self + (uint64_t)(i - GLIBC_BLOCK) * 8)
			return i;
	return -1;
}

/* pointer: the thread pointer less self. */
static int glibc_slot_find(struct memory *m, uint64_t self, uint64_t state, int64_t pointer, struct otp_walk *walk)
{
	uint64_t word[GLIBC_WORDS], block[GLIBC_BLOCK];
	int r = memory_read(m, self, word, sizeof(word)), table, slot;

	if (r < 0)
		return r;
	table = glibc_table_find(word, self);
	if (table < 0)
		return -ENOENT;
	slot = slot_in_block(word + table - GLIBC_BLOCK, state);
	if (slot >= 0)
		slot_chain(walk, (table - GLIBC_BLOCK + 2 * slot + 1) * 8 - pointer, -1);
	for (int i = 1; slot < 0 && i < GLIBC_SLOTS && table + i < GLIBC_WORDS; i++) {
		if (!word[table + i] || memory_read(m, word[table + i], block, sizeof(block)) < 0)
			continue;
		slot = slot_in_block(block, state);
		if (slot >= 0)
			slot_chain(walk, (table + i) * 8 - pointer, (2 * slot + 1) * 8);
	}
	return slot < 0 ? -ENOENT : 0;
}

/*
 * arm64: struct pthread ends where the thread pointer points, and its size is
 * glibc's own. There lies the pointer to the table of thread-local blocks: a
 * count before it, and the first block near.
 */
int cpython_arm64_pointer(struct memory *m, uint64_t self, int64_t *ret)
{
	for (uint64_t at = GLIBC_ARM64_FROM; at < GLIBC_ARM64_TO; at += 16) {
		uint64_t dtv, slot[5]; /* count, -, generation, -, first block */

		if (memory_u64(m, self + at, &dtv) < 0 || dtv % 8 || memory_read(m, dtv - 16, slot, sizeof(slot)) < 0)
			continue;
		if (slot[0] && slot[0] < GLIBC_DTV_MAX && slot[4] >= self + at + 16 && slot[4] < self + at + TLS_NEAR) {
			*ret = (int64_t)at;
			return 0;
		}
	}
	return -ENOENT;
}

static int musl_slot_find(struct memory *m, uint16_t machine, uint64_t self, uint64_t state, struct otp_walk *walk)
{
	uint64_t tsd, slot[MUSL_SLOTS];
	int64_t at = machine == EM_AARCH64 ? MUSL_ARM64_TSD : MUSL_X86_64_TSD;
	int r = memory_u64(m, self + (uint64_t)at, &tsd);

	if (r == 0)
		r = memory_read(m, tsd, slot, sizeof(slot));
	if (r < 0)
		return -ENOENT;
	for (int i = 0; i < MUSL_SLOTS; i++)
		if (slot[i] == state) {
			slot_chain(walk, at - (machine == EM_AARCH64 ? MUSL_ARM64_SIZE : 0), i * 8);
			return 0;
		}
	return -ENOENT;
}

int cpython_slot_find(struct memory *m, uint16_t machine, uint64_t self, uint64_t state, struct otp_walk *walk)
{
	int64_t pointer = 0;
	uint64_t first;
	int r = 0;

	if (self % 8)
		return -ENOENT;
	if (machine == EM_AARCH64)
		r = cpython_arm64_pointer(m, self, &pointer);
	if (r == 0)
		r = glibc_slot_find(m, self, state, pointer, walk);
	if (r == 0)
		return 0;
	/* musl's begins with a pointer to itself. */
	if (memory_u64(m, self, &first) < 0 || first != self)
		return -ENOENT;
	return musl_slot_find(m, machine, self, state, walk);
}

/* --- interpreters and their threads --- */

/* To 3.6 a variable that is not exported: `mov interp_head(%rip), %rax; ret` is all of PyInterpreterState_Head. */
static int interp_head_by_code(const struct runtime_file *file, struct memory *m, uint64_t *ret)
{
	static const uint8_t load[] = {0x48, 0x8b, 0x05}, landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct runtime_symbol s;
	uint8_t code[16];
	uint32_t at = 0;
	int32_t disp;

	if (file->binary->machine != EM_X86_64 || runtime_symbol(file->binary, "PyInterpreterState_Head", &s) < 0 ||
	    binary_read_vaddr(file->binary, s.value, code, sizeof(code)) != sizeof(code))
		return -ENOENT;
	if (memcmp(code, landing, sizeof(landing)) == 0)
		at = sizeof(landing);
	if (memcmp(code + at, load, sizeof(load)) != 0 || code[at + 7] != 0xc3)
		return -ENOENT;
	memcpy(&disp, code + at + sizeof(load), sizeof(disp));
	return memory_u64(m, file->bias + s.value + at + 7 + (uint64_t)(int64_t)disp, ret);
}

static int interp_head(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l, uint64_t *ret)
{
	struct runtime_symbol s;
	uint64_t state;

	if (l->runtime_head)
		return runtime_symbol(file->binary, "_PyRuntime", &s) < 0 ?
			       -ENOENT : memory_u64(m, file->bias + s.value + l->runtime_head, ret);
	if (interp_head_by_code(file, m, ret) == 0)
		return 0;
	/* Of the thread that holds the GIL, if any does. */
	if (runtime_symbol(file->binary, "_PyThreadState_Current", &s) < 0)
		return -ENOENT;
	if (memory_u64(m, file->bias + s.value, &state) < 0 || !state)
		return -EAGAIN;
	return memory_u64(m, state + l->thread_interp, ret);
}

/* New ones are put in front. */
uint64_t cpython_interp_main(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l)
{
	uint64_t interp = 0, next = 0;

	if (interp_head(file, m, l, &interp) < 0)
		return 0;
	for (int i = 0; interp && i < INTERPRETERS_MAX; i++, interp = next) {
		if (memory_u64(m, interp + l->interp_next, &next) < 0)
			return 0;
		if (!next)
			return interp;
	}
	return 0;
}

struct threads {
	struct memory *m;
	uint16_t machine;
	const struct cpython_layout *layout;
	struct cpython_local local; /* if layout->local */
	struct otp_walk *walk;
};

static int threads_root(const struct threads *t, uint64_t self, uint64_t state)
{
	if (t->layout->local)
		return cpython_local_find(t->m, t->machine, &t->local, self, state, t->walk);
	return cpython_slot_find(t->m, t->machine, self, state, t->walk);
}

static int threads_search(const struct threads *t, uint64_t interp)
{
	const struct cpython_layout *l = t->layout;
	struct memory *m = t->m;
	uint64_t state, owner, self;

	if (memory_u64(m, interp + l->interp_threads, &state) < 0)
		return -EFAULT;
	for (int i = 0; state && i < THREADS_MAX; i++) {
		if (memory_u64(m, state + l->thread_interp, &owner) < 0 || memory_u64(m, state + l->thread_id, &self) < 0)
			return -EFAULT;
		/* A thread that ended after the list was read, and whose memory is another's by now, or another layout. */
		if (owner != interp)
			return -ESTALE;
		if (self && threads_root(t, self, state) == 0)
			return 0;
		if (memory_u64(m, state + l->thread_next, &state) < 0)
			return -EFAULT;
	}
	return -EAGAIN;
}

/* Threads come and go while their list is read; a layout that is another is so each time. */
static int threads_search_again(const struct threads *t, uint64_t interp)
{
	int r = -ESTALE;

	for (int i = 0; i < SEARCHES_MAX && r == -ESTALE; i++)
		r = threads_search(t, interp);
	return r == -ESTALE ? -ENOTSUP : r;
}

int cpython_root_find(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l,
		      struct otp_walk *walk, char why[RUNTIME_WHY_MAX])
{
	struct threads t = {.m = m, .machine = file->binary->machine, .layout = l, .walk = walk};
	uint64_t interp = 0;
	int r = interp_head(file, m, l, &interp), found = -EAGAIN;

	if (r == 0 && l->local)
		r = cpython_local_read(file, m, &t.local);
	if (r == -ENOTSUP)
		snprintf(why, RUNTIME_WHY_MAX, "the variable of its threads' states is not where it is in known builds");
	if (r < 0)
		return r;
	for (int i = 0; interp && i < INTERPRETERS_MAX && found == -EAGAIN; i++) {
		found = threads_search_again(&t, interp);
		if (found == -EAGAIN && memory_u64(m, interp + l->interp_next, &interp) < 0)
			return -EFAULT;
	}
	if (found == -EAGAIN)
		snprintf(why, RUNTIME_WHY_MAX, "no thread of Python has its state where it is known to be");
	if (found == -ENOTSUP)
		snprintf(why, RUNTIME_WHY_MAX, "its threads are not laid out as this version lays them out");
	return found;
}
