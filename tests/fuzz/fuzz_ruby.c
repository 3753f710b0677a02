// SPDX-License-Identifier: Apache-2.0
/*
 * A process' memory, at once that of a ruby's data and of its heap: attached,
 * else taken for a version by its first byte; walked, and all frames decoded.
 */
#include <errno.h>

static const unsigned char *world;
static unsigned long world_bytes;

#define WORLD 0x7f0000000000ULL

static int world_read(void *to, unsigned long len, unsigned long long from);

#include <linux/types.h>
#define OTP_WALK_READ(to, len, from) world_read(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

#include "base/cleanup.h"
#include "tests/lib/ruby_file.h"

#define POINTER (WORLD + 0x1800)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int world_read(void *to, unsigned long len, unsigned long long from)
{
	if (from < WORLD || from - WORLD > world_bytes || len > world_bytes - (from - WORLD))
		return -EFAULT;
	memcpy(to, world + (from - WORLD), len);
	return 0;
}

static int memory_of_world(struct memory *m, uint64_t addr, void *to, size_t len)
{
	return world_read(to, len, addr);
}

static struct memory memory = {.read = memory_of_world};

static void attach(uint8_t choice, struct runtime_attached *a)
{
	static const uint16_t versions[] = {207, 300, 301, 302, 303, 304};
	char why[RUNTIME_WHY_MAX] = "";
	const struct runtime_file *f;
	uint32_t version = versions[choice % ARRAY_SIZE(versions)];
	int err;

	file_init();
	if (choice & 0x80)
		file_symbol("ruby_current_vm_ptr", BSS + 0x10, STT_OBJECT);
	file_symbol("rb_cObject", BSS + 0x18, STT_OBJECT);
	f = file_open(WORLD);
	*a = (struct runtime_attached){0};
	memory_question(&memory);
	err = f ? runtime_ruby.attach(f, &memory, a, why) : -ENOMEM;
	if (f)
		binary_put(f->binary);
	if (err == 0)
		return;
	*a = (struct runtime_attached){.walk = {.start = OTP_WALK_TLS, .nr_chain = 1, .base = 0x100}};
	a->param[RUBY_PARAM_VERSION] = version;
	a->param[RUBY_PARAM_SYMBOLS] = WORLD + DATA + 0x20;
	a->param[RUBY_PARAM_SHAPES] = WORLD + 0x2000;
	a->param[RUBY_PARAM_CLASSPATH] = 0x9990;
	ruby_plan(ruby_layout_find(version), &a->walk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct runtime_attached a;
	static struct otp_walker w;
	static struct runtime_function function;
	uint32_t words;

	if (size < 1)
		return 0;
	world = data + 1;
	world_bytes = size - 1;
	attach(data[0], &a);
	otp_walk_prepare(&w.ready, &a.walk);
	w.taken = 0;
	otp_walk_run(&w, POINTER, 1, 0);
	words = w.ready.words;
	for (uint32_t i = 0; i < w.frames; i++) {
		const uint64_t *at = (const void *)&w.out[2 + i * words];
		const struct runtime_words with = {.address = *at & OTP_WALK_ADDRESS, .missing = (uint32_t)(*at >> 56),
						   .count = words - 1, .word = at + 1, .index = i, .nr_outer = w.frames - 1 - i};
		struct runtime_frame f;

		memory_question(&memory);
		if (runtime_ruby.frame(&a, &with, &f) == 0 && f.key)
			runtime_ruby.decode(&a, &memory, &f, &function);
	}
	return 0;
}
