// SPDX-License-Identifier: Apache-2.0
/*
 * A Go program whose functions' code is the input, as a decoder attaches to it: what
 * it finds is a sound walk, or nothing. What the loader filled in is the input too.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"
#include "tests/lib/go_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE  128 /* of both functions */
#define NAMES 40

static uint64_t slot;

static int read_slot(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	(void)addr;
	if (len != sizeof(slot))
		return -EFAULT;
	memcpy(to, &slot, sizeof(slot));
	return 0;
}

static struct memory memory = {.read = read_slot};

/* One of them finds the goroutine; the other one is the one that stands in, or reads the clock. */
static void make_file(struct go_file *f, const uint8_t *data, size_t size)
{
	static const char names[] = "runtime.systemstack\0runtime.systemstack_switch";

	go_file_init(f, GO_1_20);
	memcpy(f->tiny.image + TINY_EH + GO_FILE_NAMES + NAMES, names, sizeof(names));
	go_file_put(f, f->function[0] + 4, NAMES, 4);
	go_file_put(f, f->function[1] + 4, NAMES + 20, 4);
	memcpy(f->tiny.image + TINY_CODE, data, MIN(size, (size_t)CODE));
}

static void attach(struct binary *b)
{
	struct otp_walks walks = {.generation = 1};
	struct runtime_file file = {.binary = b};
	struct runtime_attached a = {0};
	char why[RUNTIME_WHY_MAX] = "";

	memory_question(&memory);
	if (runtime_go.attach(&file, &memory, &a, why) < 0)
		return;
	walks.plan[0] = a.walk;
	if (!otp_walk_sound(&walks) || !runtime_attached_sound(&a))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct go_file file;
	struct binary *b;

	if (size < sizeof(slot))
		return 0;
	memcpy(&slot, data, sizeof(slot));
	make_file(&file, data + sizeof(slot), size - sizeof(slot));
	b = tiny_open(&file.tiny);
	if (!b)
		abort();
	attach(b);
	binary_put(b);
	return 0;
}
