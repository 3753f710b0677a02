// SPDX-License-Identifier: Apache-2.0
/*
 * A Perl process whose memory is the input: the first byte chooses the version and
 * whether there are threads, addresses are taken modulo the length of the rest.
 * Walked, named, and attached to.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

static const uint8_t *image;
static size_t image_len;

static int image_read(void *to, size_t len, uint64_t from)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = image[(from + i) % image_len];
	return 0;
}

#include <linux/types.h>
#define OTP_WALK_READ(to, len, from) image_read(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

#include "runtime/perl.h"
#include "tests/lib/perl_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMES_MAX 32

static struct otp_walker walker;
static struct runtime_function function;
static uint32_t version;

/* The version is that of the first byte, so that inputs get beyond it. */
static int memory_of_image(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	if (addr < 4096)
		return -EFAULT;
	image_read(to, len, addr);
	if (addr == PERL_FILE_DATA + 16 * S_REVISION)
		*(uint8_t *)to = 5;
	if (addr == PERL_FILE_DATA + 16 * S_VERSION)
		*(uint8_t *)to = (uint8_t)version;
	return 0;
}

static struct memory memory = {.read = memory_of_image};

static int attach(bool threads, uint16_t machine, struct runtime_attached *ret)
{
	struct runtime_file file = {.binary = perl_file(threads, machine, "libc.so.6"), .thread = 4096 + 0x740};
	char why[RUNTIME_WHY_MAX];
	int r = -ENOMEM;

	memory_question(&memory);
	if (file.binary)
		r = runtime_perl.attach(&file, &memory, ret, why);
	binary_put(file.binary);
	return r;
}

static void name(const struct runtime_attached *a, uint32_t i)
{
	const uint64_t *root = (const void *)&walker.out[2], *at = &root[walker.root_words + i * walker.ready.words];
	struct runtime_words w = {.address = *at & OTP_WALK_ADDRESS, .missing = (uint32_t)(*at >> 56),
				  .count = walker.ready.words - 1, .word = at + 1, .root = root, .nr_root = walker.root_words,
				  .index = i, .nr_outer = walker.frames - 1 - i, .last = i + 1 == walker.frames};
	struct runtime_frame f = {0};

	if (runtime_perl.frame(a, &w, &f) < 0 || !f.key || i >= NAMES_MAX)
		return;
	memory_question(&memory);
	if (runtime_perl.decode(a, &memory, &f, &function) == 0 &&
	    (!function.name[0] || !memchr(function.name, '\0', sizeof(function.name)) ||
	     !memchr(function.file, '\0', sizeof(function.file)) || function.nr_lines > 1))
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t versions[] = {28, 30, 32, 34, 36, 38, 40, 42};
	struct runtime_attached a = {0};

	if (size < 2)
		return 0;
	image = data + 1;
	image_len = size - 1;
	version = versions[data[0] & 7];
	if (attach(data[0] & 8, data[0] & 16 ? EM_AARCH64 : EM_X86_64, &a) < 0)
		return 0;
	otp_walk_prepare(&walker.ready, &a.walk);
	walker.taken = 0;
	otp_walk_run(&walker, 4096, 1, 0);
	for (uint32_t i = 0; i < walker.frames; i++)
		name(&a, i);
	return 0;
}
