// SPDX-License-Identifier: Apache-2.0
/* Counting: the path that every sample takes. */
#include "profile/builder.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/clean.h"

#define DEFAULT_STACKS  65536
#define DEFAULT_FRAMES  1048576
#define DEFAULT_REQUEST (4u << 20)
#define WORKLOADS_MAX   65536

static void set_defaults(struct profile_limits *l)
{
	l->stacks = l->stacks ? l->stacks : DEFAULT_STACKS;
	l->frames = l->frames ? l->frames : DEFAULT_FRAMES;
	l->request_bytes = l->request_bytes ? l->request_bytes : DEFAULT_REQUEST;
}

int profile_new(const struct profile_config *cfg, struct profile_builder **ret)
{
	struct profile_builder *b = calloc(1, sizeof(*b));
	struct profile_limits *l;

	if (!b)
		return -ENOMEM;
	b->cfg = *cfg;
	l = &b->cfg.limits;
	set_defaults(l);
	intern_init(&b->stacks, l->stacks, (size_t)l->frames * sizeof(uint32_t));
	/* Stacks share most of their frames; a quarter is far more than was ever seen. */
	intern_init(&b->locations, MAX(l->frames / 4, 1024), SIZE_MAX);
	intern_init(&b->samples, l->stacks * 2, SIZE_MAX);
	intern_init(&b->workloads, WORKLOADS_MAX, SIZE_MAX);
	*ret = b;
	return 0;
}

void builder_reset(struct profile_builder *b)
{
	for (uint32_t i = 0; i < b->samples.count; i++) {
		str_put(builder_sample(b, i)->comm);
		str_put(builder_sample(b, i)->exe);
	}
	for (uint32_t i = 0; i < b->workloads.count; i++)
		workload_put(builder_workload(b, i));
	for (uint32_t i = 0; i < b->locations.count; i++) {
		const struct location_key *key = intern_key(&b->locations, i);

		if (image_is_jit(key->image))
			str_put((struct str *)(uintptr_t)key->address);
	}
	images_reset(&b->images);
	intern_reset(&b->locations);
	intern_reset(&b->stacks);
	intern_reset(&b->samples);
	intern_reset(&b->workloads);
	if (!b->samples.cap) {
		free(b->counts);
		b->counts = NULL;
		b->counts_cap = 0;
	}
	b->total = (struct ledger_counts){0};
}

struct profile_builder *profile_free(struct profile_builder *b)
{
	if (b) {
		builder_reset(b);
		intern_done(&b->locations);
		intern_done(&b->stacks);
		intern_done(&b->samples);
		intern_done(&b->workloads);
		free(b->counts);
		free(b);
	}
	return NULL;
}

static int push(struct profile_builder *b, uint32_t *n, uint64_t image, uint64_t address)
{
	struct location_key key = {.address = address, .image = image};
	int r = intern_add(&b->locations, &key, sizeof(key), &b->scratch[*n]);

	if (r < 0)
		return r;
	*n += 1;
	return 0;
}

/* The innermost address was interrupted, all others are return addresses. */
static int push_kernel(struct profile_builder *b, const struct profile_sample *s, uint32_t *n)
{
	uint32_t count = MIN(s->nr_kernel, (uint32_t)OTP_KSTACK_MAX);
	int r = 0;

	/* Without symbols an address cannot be made relative, and must not leave. */
	if (!b->cfg.kernel)
		return count ? push(b, n, IMAGE_KERNEL, 0) : 0;
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = push(b, n, IMAGE_KERNEL, s->kernel[i] - (i && s->kernel[i] ? 1 : 0));
	return r;
}

/* Code that the program made, where somebody knows its name. 0: nobody does. */
static int push_jit(struct profile_builder *b, const struct profile_sample *s, uint64_t pc, uint32_t *n)
{
	bool dump = false;
	struct str *name = s->jit ? s->jit(s->jit_ctx, pc, &dump) : NULL;
	struct location_key key = {.image = dump ? IMAGE_JITDUMP : IMAGE_JIT};
	int r;

	if (!name)
		return 0;
	key.address = (uint64_t)(uintptr_t)name;
	r = intern_add(&b->locations, &key, sizeof(key), &b->scratch[*n]);
	/* The first location of this name keeps the reference. */
	if (r <= 0)
		str_put(name);
	if (r < 0)
		return r;
	*n += 1;
	return 1;
}

static int push_user_frame(struct profile_builder *b, const struct profile_sample *s, const struct frame *f,
			   uint32_t *n)
{
	uint64_t address = f->pc;
	int image = f->map ? IMAGE_ANON : IMAGE_NONE;

	if (f->map && f->map->file->kind != MAPPED_ANON) {
		address = mapping_address(f->map, f->pc);
		image = images_find(&b->images, f->map->file);
		if (image < 0)
			return image;
	}
	if (image == IMAGE_ANON) {
		int r = push_jit(b, s, f->pc - (f->flags & FRAME_CALLER && f->pc > f->map->start), n);

		if (r)
			return MIN(r, 0);
	}
	/* A call cannot end where its mapping begins: such an address is garbage, and stays in it. */
	if ((f->flags & FRAME_CALLER) && address && (!f->map || f->pc > f->map->start))
		address--;
	return push(b, n, (uint64_t)image, address);
}

static int push_user(struct profile_builder *b, const struct profile_sample *s, uint32_t *n)
{
	int r = 0;

	if (!s->user)
		return 0;
	for (uint32_t i = 0; r == 0 && i < MIN(s->user->count, (uint32_t)UNWIND_FRAMES_MAX); i++)
		r = push_user_frame(b, s, &s->user->frames[i], n);
	return r;
}

static int push_marker(struct profile_builder *b, const struct profile_sample *s, uint32_t *n)
{
	const char *marker = s->marker;

	if (!marker && s->user)
		marker = unwind_end_marker(s->user->end);
	/* A sample without any frame is dropped by receivers. */
	if (!marker && !*n)
		marker = "[no stack]";
	return marker ? push(b, n, IMAGE_MARKER, (uint64_t)(uintptr_t)marker) : 0;
}

static int add_stack(struct profile_builder *b, const struct profile_sample *s, uint32_t *ret)
{
	uint32_t n = 0;
	int r = push_kernel(b, s, &n);

	if (r == 0)
		r = push_user(b, s, &n);
	if (r == 0)
		r = push_marker(b, s, &n);
	if (r == 0)
		r = intern_add(&b->stacks, b->scratch, n * sizeof(uint32_t), ret);
	return MIN(r, 0);
}

int builder_add_workload(struct profile_builder *b, struct workload *w, uint32_t *ret)
{
	int r = intern_add(&b->workloads, &w, sizeof(w), ret);

	if (r > 0)
		workload_ref(w);
	return MIN(r, 0);
}

static bool selected(const struct profile_builder *b, enum sample_attribute a)
{
	return b->cfg.attributes & 1u << a;
}

static struct str *clean_comm(const char *comm)
{
	struct str *raw = str_get(comm, strnlen(comm, OTP_COMM_LEN)), *clean;

	clean = raw ? clean_str(raw, OTP_COMM_LEN) : NULL;
	str_put(raw);
	return clean;
}

/* Text that cannot be had without memory is merely absent. */
static void set_attributes(const struct profile_builder *b, const struct profile_sample *s, struct sample_key *key)
{
	if (selected(b, SAMPLE_ATTRIBUTE_PID))
		key->pid = s->pid;
	if (selected(b, SAMPLE_ATTRIBUTE_THREAD_ID))
		key->tid = s->tid;
	if (selected(b, SAMPLE_ATTRIBUTE_CPU))
		key->cpu = s->cpu;
	if (selected(b, SAMPLE_ATTRIBUTE_EXECUTABLE) && s->exe)
		key->exe = clean_str(s->exe, NAME_MAX);
	if (selected(b, SAMPLE_ATTRIBUTE_THREAD_NAME) && s->comm)
		key->comm = clean_comm(s->comm);
}

static void sample_key_done(struct sample_key *key)
{
	str_put(key->comm);
	str_put(key->exe);
}

static int reserve_count(struct profile_builder *b)
{
	uint32_t cap = b->counts_cap ? b->counts_cap * 2 : 256;
	struct sample_count *counts;

	if (b->samples.count < b->counts_cap)
		return 0;
	counts = reallocarray(b->counts, cap, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	b->counts = counts;
	b->counts_cap = cap;
	return 0;
}

int builder_count(struct profile_builder *b, const struct sample_key *key, const struct sample_count *count)
{
	uint32_t number;
	int r = reserve_count(b);

	if (r == 0)
		r = intern_add(&b->samples, key, sizeof(*key), &number);
	if (r < 0)
		return r;
	if (r > 0) {
		str_ref(key->comm);
		str_ref(key->exe);
		b->counts[number] = (struct sample_count){0};
	}
	b->counts[number].samples += count->samples;
	b->counts[number].value += count->value;
	b->total.of[key->slot] += count->samples;
	return 0;
}

int profile_add(struct profile_builder *b, const struct profile_sample *s)
{
	_cleanup_(sample_key_done) struct sample_key key = {.slot = s->slot};
	const struct sample_count one = {.samples = 1, .value = s->value};
	int r;

	r = add_stack(b, s, &key.stack);
	if (r == 0)
		r = builder_add_workload(b, s->workload, &key.workload);
	if (r < 0)
		return r;
	set_attributes(b, s, &key);
	return builder_count(b, &key, &one);
}

uint64_t profile_samples(const struct profile_builder *b)
{
	return ledger_counts_total(&b->total);
}

size_t profile_bytes(const struct profile_builder *b)
{
	return sizeof(*b) + intern_memory(&b->locations) + intern_memory(&b->stacks) +
	       intern_memory(&b->samples) + intern_memory(&b->workloads) +
	       b->counts_cap * sizeof(*b->counts) + b->images.cap * sizeof(*b->images.list) +
	       (b->images.by_file.cap + b->images.by_identity.cap) * sizeof(struct map_slot);
}

void profile_set_kernel(struct profile_builder *b, const struct kernel_symbols *kernel)
{
	b->cfg.kernel = kernel;
}

void profile_set_origins(struct profile_builder *b, const struct origins *origins)
{
	b->cfg.origins = *origins;
}

void profile_set_shape(struct profile_builder *b, uint32_t attributes, size_t request_bytes)
{
	b->cfg.attributes = attributes;
	b->cfg.limits.request_bytes = request_bytes;
}

void profile_top(const struct profile_builder *b, struct profile_top *ret)
{
	*ret = b->top;
}

void profile_stats(const struct profile_builder *b, struct profile_stats *ret)
{
	*ret = b->stats;
}
