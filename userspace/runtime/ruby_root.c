// SPDX-License-Identifier: Apache-2.0
/*
 * From a thread pointer to the EC. The main thread's is known from ruby's own
 * thread object; where its native thread keeps the EC (from 3.0 on) or the
 * thread object (2.7) is found by looking for that pointer, so that neither
 * symbols nor the C library's version are needed: both are in blocks that each
 * thread has at the same place.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define ROOT_CHUNK	 512	  /* words */
#define ROOT_DATA_MAX	 (1u << 20)
#define ROOT_TRIES	 3
#define ROOT_MODULES_MAX 8
#define ROOT_MODULES_ALL 64	  /* where no relocation names the module */
#define ROOT_BLOCK_MAX	 4096	  /* bytes of a thread-local block */

/* --- the main thread --- */

/* vm and ec of the thread, and the EC's own thread, must agree. */
static bool root_is_thread(const struct ruby *r, uint64_t vm, uint64_t thread, uint64_t *ret_ec)
{
	uint64_t of_vm, ec, words[3], of_ec, end;

	if (memory_u64(r->memory, thread + r->layout->thread_vm, &of_vm) < 0 || of_vm != vm ||
	    memory_u64(r->memory, thread + r->layout->thread_ec, &ec) < 0 || !ruby_is_object(ec) ||
	    ruby_words(r, ec, words, 3) < 0 || memory_u64(r->memory, ec + r->layout->ec_thread, &of_ec) < 0)
		return false;
	end = words[0] + words[1] * 8;
	*ret_ec = ec;
	return of_ec == thread && words[0] <= words[2] && words[2] < end && words[2] % 8 == 0;
}

static int root_thread_of_vm(const struct ruby *r, uint64_t vm, struct ruby_thread *ret)
{
	uint64_t thread, native;
	int err = memory_u64(r->memory, vm + r->layout->vm_main_thread, &thread);

	if (err < 0 || !ruby_is_object(thread) || !root_is_thread(r, vm, thread, &ret->ec))
		return -EAGAIN;
	native = thread;
	if (r->layout->thread_native && memory_u64(r->memory, thread + r->layout->thread_native, &native) < 0)
		return -EAGAIN;
	if (memory_u64(r->memory, native + r->layout->thread_id, &ret->pthread) < 0)
		return -EAGAIN;
	ret->vm = vm;
	ret->thread = thread;
	return 0;
}

/* The pointer to the VM is somewhere in the file's writable data. */
static int root_search(const struct ruby *r, uint64_t at, uint64_t size, struct ruby_thread *ret)
{
	uint64_t word[ROOT_CHUNK];

	for (uint64_t done = 0; done < MIN(size, (uint64_t)ROOT_DATA_MAX); done += sizeof(word)) {
		size_t n = MIN(size - done, (uint64_t)sizeof(word)) / 8;
		int err = ruby_words(r, at + done, word, n);

		if (err < 0)
			return err == -E2BIG ? err : -EAGAIN;
		for (size_t i = 0; i < n; i++)
			if (ruby_is_object(word[i]) && word[i] < 1ULL << 56 && root_thread_of_vm(r, word[i], ret) == 0)
				return 0;
	}
	return -EAGAIN;
}

int ruby_main_thread(const struct ruby *r, const struct runtime_file *file, struct ruby_thread *ret)
{
	const struct binary_section *bss = binary_section(file->binary, ".bss");
	struct runtime_symbol symbol;
	uint64_t vm;

	if (runtime_symbol(file->binary, "ruby_current_vm_ptr", &symbol) < 0)
		return bss ? root_search(r, file->bias + ALIGN_UP(bss->addr, 8), bss->size, ret) : -ENOTSUP;
	if (memory_u64(r->memory, file->bias + symbol.value, &vm) < 0)
		return -EFAULT;
	return vm ? root_thread_of_vm(r, vm, ret) : -EAGAIN;
}

/* --- 2.7: the thread object is a thread-specific value --- */

static void root_plan(struct otp_walk *ret, int64_t base, const int32_t *chain, uint8_t nr)
{
	ret->start = OTP_WALK_TLS;
	ret->base = (uint64_t)base;
	ret->nr_chain = nr;
	memcpy(ret->chain, chain, nr * sizeof(*chain));
}

/* Bytes from at to the word that holds value; -ENOENT. */
static int root_find(const struct ruby *r, uint64_t at, size_t bytes, uint64_t value)
{
	uint64_t word[ROOT_BLOCK_MAX / 8];
	size_t n = MIN(bytes, sizeof(word)) / 8;
	int err = ruby_words(r, at, word, n);

	for (size_t i = 0; err == 0 && i < n; i++)
		if (word[i] == value)
			return (int)(i * 8);
	return err < 0 ? err : -ENOENT;
}

/*
 * glibc has the first 32 values in its descriptor, from 0x310 on, and those
 * after in blocks, to which pointers lie from 0x510 on; musl has one block for
 * all, behind a pointer at 0x80.
 */
static int root_specific(const struct ruby *r, const struct ruby_thread *t, struct otp_walk *ret)
{
	static const int16_t blocks[] = {0x80, 0x510, 0x518, 0x520, 0x528, 0x530, 0x538, 0x540, 0x548};
	int32_t chain[3] = {0, r->layout->thread_ec, 0};
	int at = root_find(r, t->pthread + 0x310, 0x200, t->thread);
	uint64_t block;

	if (at >= 0) {
		root_plan(ret, 0x310 + at, chain, 2);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (memory_u64(r->memory, t->pthread + (uint64_t)blocks[i], &block) < 0 || !ruby_is_object(block))
			continue;
		at = root_find(r, block, i ? 0x200 : 0x400, t->thread);
		if (at < 0)
			continue;
		root_plan(ret, blocks[i], (const int32_t[]){0, at, r->layout->thread_ec}, 3);
		return 0;
	}
	return -ENOTSUP;
}

/* --- 3.0 on: the EC is thread-local --- */

/* How to look for the block: which words of the vector of blocks, and where in a block. */
struct root_tls {
	uint64_t module[ROOT_MODULES_MAX];
	uint32_t nr_modules; /* 0: any */
	uint32_t from, size; /* bytes of the block in which the EC may be */
};

static void root_add_module(struct root_tls *t, uint64_t module)
{
	for (uint32_t i = 0; i < t->nr_modules; i++)
		if (t->module[i] == module)
			return;
	if (t->nr_modules < ROOT_MODULES_MAX && module && module < 1u << 16)
		t->module[t->nr_modules++] = module;
}

static bool root_is_module_relocation(const struct binary *b, uint64_t info)
{
	uint32_t type = ELF64_R_TYPE(info);

	return b->machine == EM_X86_64 ? type == R_X86_64_DTPMOD64 : type == R_AARCH64_TLS_DTPMOD;
}

/* Number of the file's thread-local block: ld.so wrote it to where relocations of that kind point. */
static void root_modules(const struct ruby *r, const struct runtime_file *file, struct root_tls *ret)
{
	const struct binary_section *s = binary_section(file->binary, ".rela.dyn");
	Elf64_Rela rela[64];
	uint64_t module;

	for (uint64_t at = 0; s && at < MIN(s->size, (uint64_t)ROOT_DATA_MAX); at += sizeof(rela)) {
		ssize_t n = binary_read(file->binary, s->offset + at, rela, MIN(sizeof(rela), s->size - at));

		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*rela); i++)
			if (root_is_module_relocation(file->binary, rela[i].r_info) &&
			    memory_u64(r->memory, file->bias + rela[i].r_offset, &module) == 0)
				root_add_module(ret, module);
	}
}

/* The symbol says where in the block; else anywhere in .tdata and .tbss. */
static void root_bounds(const struct runtime_file *file, struct root_tls *ret)
{
	const struct binary_section *data = binary_section(file->binary, ".tdata");
	const struct binary_section *bss = binary_section(file->binary, ".tbss");
	struct runtime_symbol symbol;

	if (runtime_symbol(file->binary, "ruby_current_ec", &symbol) == 0 && symbol.type == STT_TLS) {
		ret->from = (uint32_t)MIN(symbol.value, (uint64_t)ROOT_DATA_MAX);
		ret->size = 8;
		return;
	}
	ret->size = (uint32_t)MIN((data ? data->size : 0) + (bss ? bss->size + bss->addr % 64 : 0), (uint64_t)ROOT_BLOCK_MAX);
}

/* A vector of blocks: glibc's has two words for a module, musl's one. */
static int root_vector(const struct ruby *r, uint64_t pointer, int32_t at, int32_t stride, const struct root_tls *tls,
		       uint64_t ec, struct otp_walk *ret)
{
	uint32_t nr = tls->nr_modules ? tls->nr_modules : ROOT_MODULES_ALL;
	uint64_t vector, block;

	if (memory_u64(r->memory, pointer + (uint64_t)at, &vector) < 0 || !ruby_is_object(vector))
		return -ENOENT;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t module = tls->nr_modules ? tls->module[i] : i + 1;
		int found;

		if (memory_u64(r->memory, vector + module * (uint64_t)stride, &block) < 0 || !ruby_is_object(block))
			continue;
		found = root_find(r, block + tls->from, tls->size, ec);
		if (found < 0)
			continue;
		root_plan(ret, 0, (const int32_t[]){at, (int32_t)module * stride, (int32_t)tls->from + found}, 3);
		return 0;
	}
	return -ENOENT;
}

static int root_x86_64(const struct ruby *r, const struct ruby_thread *t, const struct root_tls *tls, struct otp_walk *ret)
{
	if (root_vector(r, t->pthread, 8, 16, tls, t->ec, ret) == 0)
		return 0;
	return root_vector(r, t->pthread, 8, 8, tls, t->ec, ret);
}

/* The thread pointer is behind the descriptor, whose size differs between versions of the C libraries. */
static int root_aarch64(const struct ruby *r, const struct ruby_thread *t, const struct root_tls *tls, struct otp_walk *ret)
{
	for (uint64_t size = 0x80; size < 0x900; size += 16)
		if (root_vector(r, t->pthread + size, 0, 16, tls, t->ec, ret) == 0 ||
		    root_vector(r, t->pthread + size, -8, 8, tls, t->ec, ret) == 0)
			return 0;
	return -ENOENT;
}

/* The main thread may be changing fibers: it holds another EC in the next moment. */
static int root_local(const struct ruby *r, const struct runtime_file *file, const struct ruby_thread *t,
		      struct otp_walk *ret)
{
	struct root_tls tls = {0};
	struct ruby_thread now = *t;

	root_modules(r, file, &tls);
	root_bounds(file, &tls);
	for (int i = 0; i < ROOT_TRIES; i++) {
		if ((file->binary->machine == EM_X86_64 ? root_x86_64 : root_aarch64)(r, &now, &tls, ret) == 0)
			return 0;
		if (!root_is_thread(r, t->vm, t->thread, &now.ec))
			break;
	}
	return -EAGAIN;
}

int ruby_root(const struct ruby *r, const struct runtime_file *file, const struct ruby_thread *t, struct otp_walk *ret)
{
	if (r->layout->version >= 300)
		return root_local(r, file, t, ret);
	return file->binary->machine == EM_X86_64 ? root_specific(r, t, ret) : -ENOTSUP;
}
