// SPDX-License-Identifier: Apache-2.0
/*
 * A Go program whose functions' code is the input, as a decoder attaches to it: what
 * it finds is a sound walk, or nothing. What the loader filled in is the input too.
 * And words that such a walk has copied, read as a goroutine's creator and labels.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/go.h"
#include "tests/lib/go_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE  320 /* of all functions */
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

/* The first one finds the goroutine, the next one stands in; the last ones have creator and labels. */
static void make_file(struct go_file *f, const uint8_t *data, size_t size)
{
	static const char names[] = "runtime.systemstack\0runtime.systemstack_switch";

	go_file_init(f, size % 2 ? GO_1_18 : GO_1_20);
	go_file_add(f, 2, "runtime.goexit");
	go_file_add(f, 3, "runtime.printcreatedby");
	go_file_add(f, 4, "runtime/pprof.runtime_setProfLabel");
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
	walks.plan[1] = a.more;
	if (!otp_walk_sound(&walks) || !runtime_attached_sound(&a))
		abort();
}

#define WORDS_MAX 512

/* Every text ends, and none is beyond its bounds. */
static void read_words(const uint8_t *data, size_t size)
{
	static uint64_t words[WORDS_MAX];
	struct runtime_attached a = {.more.root_keep = 1, .param[GO_LABELS] = data[0] % 3};
	struct runtime_copied w = {.root = words, .nr_root = data[1] % 2, .frames = words, .cut = data[2] % 2};
	struct runtime_context c = {0};

	memset(words, 0, sizeof(words));
	memcpy(words, data, MIN(size, sizeof(words)));
	w.frame_words = data[3] % 2 ? data[3] % 32 + 1u : data[0] % 3 == GO_LABELS_LIST ? 17 : 11;
	w.nr_frames = MIN(data[4] % 32u, WORDS_MAX / w.frame_words);
	runtime_go.context(&a, &w, &c);
	if (c.nr_labels > RUNTIME_LABELS)
		abort();
	for (uint32_t i = 0; i < c.nr_labels; i++)
		if (!c.label[i].key[0] || !memchr(c.label[i].key, 0, RUNTIME_LABEL_KEY) ||
		    !memchr(c.label[i].value, 0, RUNTIME_LABEL_VALUE))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct go_file file;
	struct binary *b;

	if (size < sizeof(slot))
		return 0;
	memcpy(&slot, data, sizeof(slot));
	read_words(data, size);
	make_file(&file, data + sizeof(slot), size - sizeof(slot));
	b = tiny_open(&file.tiny);
	if (!b)
		abort();
	attach(b);
	binary_put(b);
	return 0;
}
