// SPDX-License-Identifier: Apache-2.0
/*
 * A PHP process whose memory is the input: the first byte chooses the layout,
 * addresses are taken modulo the length of the rest. Walked, named, and attached to.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

static const uint8_t *image;
static size_t image_len;

static int image_read(void *to, size_t len, uint64_t from)
{
	for (size_t done = 0, n; done < len; done += n) {
		size_t at = (from + done) % image_len;

		n = MIN(len - done, image_len - at);
		memcpy((uint8_t *)to + done, image + at, n);
	}
	return 0;
}

#include <linux/types.h>
#define OTP_WALK_READ(to, len, from) image_read(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

#include "runtime/php.h"
#include "tests/lib/symbols_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct otp_walker walker;
static struct runtime_function function;

static int memory_of_image(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	return addr < 4096 ? -EFAULT : image_read(to, len, addr);
}

static struct memory memory = {.read = memory_of_image};

static struct binary *php_file(bool threads)
{
	static struct symbols_elf e;

	symbols_elf_init(&e, EM_X86_64);
	symbols_elf_add(&e, threads ? "executor_globals_offset" : "executor_globals", 0);
	symbols_elf_add(&e, "module_registry", 64);
	symbols_elf_add(&e, "tsrm_get_ls_cache", SYMBOLS_ELF_CODE);
	symbols_elf_need(&e, "libc.so.6");
	memcpy(e.code, "\x8b\x3d\0\0\0\0\xe9", 7);
	return symbols_elf_open(&e);
}

static void attach(bool threads, struct runtime_attached *ret)
{
	struct runtime_file file = {.binary = php_file(threads), .bias = 8192};
	char why[RUNTIME_WHY_MAX];

	memory_question(&memory);
	if (file.binary)
		runtime_php.attach(&file, &memory, ret, why);
	binary_put(file.binary);
}

static void name(const struct runtime_attached *a, uint32_t i)
{
	uint32_t words = otp_walk_frame_words(&a->walk), root = otp_walk_count(a->walk.root_keep);
	const uint64_t *at = (const void *)&walker.out[2 + root + i * words];
	struct runtime_words w = {.address = *at & OTP_WALK_ADDRESS, .missing = (uint32_t)(*at >> 56), .count = words - 1,
				  .word = at + 1, .root = (const void *)&walker.out[2], .nr_root = root, .index = i,
				  .nr_outer = walker.frames - 1 - i};
	struct runtime_frame f;

	if (runtime_php.frame(a, &w, &f) < 0)
		return;
	memory_question(&memory);
	if (runtime_php.decode(a, &memory, &f, &function) == 0 && !memchr(function.name, '\0', sizeof(function.name)))
		__builtin_trap();
}

static void walk(const struct runtime_attached *a)
{
	otp_walk_prepare(&walker.ready, &a->walk);
	walker.taken = 0;
	otp_walk_run(&walker, 4096, 1, 0);
	for (uint32_t i = 0; i < walker.frames && i < 16; i++)
		name(a, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct php_layout *l = size ? php_layout_at(data[0] & 7) : NULL;
	struct runtime_attached a = {0};

	if (size < 2 || !l)
		return 0;
	image = data + 1;
	image_len = size - 1;
	attach(data[0] & 128, &a);
	if (a.walk.start == OTP_WALK_NONE) {
		php_plan(l, &a.walk);
		a.walk.start = OTP_WALK_AT;
		a.walk.nr_chain = 1;
		a.walk.chain[0] = l->current;
		a.param[PHP_LAYOUT] = php_layout_index(l);
		a.param[PHP_GLOBALS] = 4096;
	}
	walk(&a);
	return 0;
}
