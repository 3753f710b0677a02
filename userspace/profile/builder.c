// SPDX-License-Identifier: Apache-2.0
/* Counts samples: this code runs for every sample. */
#include "profile/builder.h"

#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/clean.h"

#define DEFAULT_STACKS 65536
#define DEFAULT_FRAMES 1048576
#define WORKLOADS_MAX  65536

int profile_new(const struct profile_config *cfg, struct profile_builder **ret)
{
	uint32_t stacks = cfg->limits.stacks ? cfg->limits.stacks : DEFAULT_STACKS;
	uint32_t frames = cfg->limits.frames ? cfg->limits.frames : DEFAULT_FRAMES;
	struct profile_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->cfg = cfg;
	b->text.max = BUILDER_TEXT_MAX;
	intern_init(&b->stacks, stacks, (size_t)frames * sizeof(uint32_t));
	/* Stacks share most of their frames: a quarter is far more than was ever measured. */
	intern_init(&b->locations, MAX(frames / 4, 1024), SIZE_MAX);
	intern_init(&b->samples, stacks * 2, SIZE_MAX);
	intern_init(&b->workloads, WORKLOADS_MAX, SIZE_MAX);
	*ret = b;
	return 0;
}

#define SAMPLE_APPLY_INT(fn, field)
#define SAMPLE_APPLY_STRING(fn, field) fn(field);
#define SAMPLE_APPLY_LABELS(fn, field) fn(field);

static void sample_key_ref(const struct sample_key *key)
{
#define X(NAME, name, type, field) SAMPLE_APPLY_##type(str_ref, key->field)
	SAMPLE_ATTRIBUTES(X)
#undef X
}

static void sample_key_put(const struct sample_key *key)
{
#define X(NAME, name, type, field) SAMPLE_APPLY_##type(str_put, key->field)
	SAMPLE_ATTRIBUTES(X)
#undef X
}

void builder_reset(struct profile_builder *b)
{
	for (uint32_t i = 0; i < b->samples.count; i++)
		sample_key_put(builder_sample(b, i));
	for (uint32_t i = 0; i < b->workloads.count; i++)
		workload_put(builder_workload(b, i));
	share_done(&b->text);
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
	if (!b->locations.cap) {
		free(b->users);
		b->users = NULL;
		b->users_cap = 0;
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
		free(b->users);
		free(b);
	}
	return NULL;
}

static int builder_set_user(struct profile_builder *b, uint32_t location, uint32_t workload)
{
	int r = array_reach(&b->users, location, &b->users_cap, sizeof(*b->users));

	if (r == 0)
		b->users[location] = workload;
	else
		intern_truncate(&b->locations, location);
	return r;
}

int builder_add_location(struct profile_builder *b, const struct location_key *key, uint32_t workload, uint32_t *ret)
{
	int r = intern_add(&b->locations, key, sizeof(*key), ret);

	return r > 0 ? builder_set_user(b, *ret, workload) : r;
}

/* Whether all of its text is counted; what is not leaves the key. Nameless code of a kind is one location. */
static bool code_key_take_text(struct code_key *key, struct share *text, uint32_t workload)
{
	if (!share_take(text, workload, key->function)) {
		*key = (struct code_key){.head = {.kind = key->head.kind, .is_code = 1, .named_by = NAME_RAW}};
		return false;
	}
	if (share_take(text, workload, key->file))
		return true;
	key->file = NULL;
	return false;
}

/* The whole key comes first: text that another sample brought is there to use. */
int builder_add_code(struct profile_builder *b, const struct code_key *key, uint32_t workload, uint32_t *ret)
{
	struct code_key bounded = *key;
	int r = intern_add(&b->locations, key, sizeof(*key), ret);

	if (r > 0 && !code_key_take_text(&bounded, &b->text, workload)) {
		intern_truncate(&b->locations, *ret);
		r = intern_add(&b->locations, &bounded, sizeof(bounded), ret);
	}
	return r > 0 ? builder_set_user(b, *ret, workload) : r;
}

static int builder_push_code(struct profile_builder *b, const struct frame *f, uint32_t workload, uint32_t *ret)
{
	const struct code_key key = {.head = {.kind = f->kind, .is_code = 1, .named_by = f->named_by},
				     .line = f->line,
				     .column = f->column,
				     .start_line = f->start_line,
				     .function = f->function,
				     .file = f->file};

	return builder_add_code(b, &key, workload, ret);
}

/* Without symbols an address cannot be made relative, and must not leave. */
static int builder_push_kernel(struct profile_builder *b, const struct frame *f, uint32_t workload, uint32_t *ret)
{
	uint64_t address = b->cfg->kernel ? f->pc - (f->flags & FRAME_CALLER && f->pc ? 1 : 0) : 0;
	const struct location_key key = location_key_of(KIND_KERNEL, 0, address);

	return builder_add_location(b, &key, workload, ret);
}

static int builder_push_address(struct profile_builder *b, const struct frame *f, uint32_t workload, uint32_t *ret)
{
	int image = f->map ? IMAGE_ANON : IMAGE_NONE;
	uint64_t address = f->pc;
	struct location_key key;

	if (f->map && f->map->file->kind != MAPPED_ANON) {
		image = images_find(&b->images, f->map->file);
		if (image < 0)
			return image;
		address = mapping_address(f->map, f->pc);
	}
	/* No call ends at the start of its mapping: such an address is invalid, and is kept inside the mapping. */
	if (f->flags & FRAME_CALLER && address && (!f->map || f->pc > f->map->start))
		address--;
	key = location_key_of(f->kind, (uint32_t)image, address);
	if (f->flags & FRAME_CREATOR)
		key.head.is_creator = 1;
	return builder_add_location(b, &key, workload, ret);
}

static int builder_push_marker(struct profile_builder *b, uint32_t marker, uint32_t workload, uint32_t *ret)
{
	const struct location_key key = location_key_of(KIND_MARKER, 0, marker);

	return builder_add_location(b, &key, workload, ret);
}

static int builder_push_frame(struct profile_builder *b, const struct frame *f, uint32_t workload, uint32_t *ret)
{
	if (f->flags & FRAME_NAMED)
		return builder_push_code(b, f, workload, ret);
	if (f->kind == KIND_MARKER)
		return builder_push_marker(b, f->marker, workload, ret);
	if (f->kind == KIND_KERNEL)
		return builder_push_kernel(b, f, workload, ret);
	return builder_push_address(b, f, workload, ret);
}

/* Without symbols, all kernel frames of a stack are one. */
static bool builder_is_repeated(const struct profile_builder *b, const struct frame *f, bool first)
{
	return f->kind == KIND_KERNEL && !b->cfg->kernel && !first;
}

/* A stack without frames gets a marker, because receivers drop a sample without any frame. */
static int builder_add_stack(struct profile_builder *b, const struct profile_sample *s, struct sample_key *key,
			     struct sample_count *count)
{
	uint32_t n = 0;
	int r = 0;

	if (s->nr_frames > ARRAY_SIZE(b->scratch))
		return -E2BIG;
	for (uint32_t i = 0; r == 0 && i < s->nr_frames; i++) {
		const struct frame *f = &s->frames[i];

		if (builder_is_repeated(b, f, n == 0))
			continue;
		r = builder_push_frame(b, f, key->workload, &b->scratch[n++]);
		count->guessed[f->guess]++;
	}
	if (r == 0 && !n)
		r = builder_push_marker(b, FRAME_MARKER_EMPTY, key->workload, &b->scratch[n++]);
	return r < 0 ? r : intern_number(&b->stacks, b->scratch, n * sizeof(uint32_t), &key->stack);
}

int builder_add_workload(struct profile_builder *b, struct workload *w, uint32_t *ret)
{
	int r = intern_add(&b->workloads, &w, sizeof(w), ret);

	if (r > 0)
		workload_ref(w);
	return MIN(r, 0);
}

static bool builder_selects(const struct profile_builder *b, enum sample_attribute a)
{
	return b->cfg->attributes & 1u << a;
}

static struct str *builder_clean_comm(const char *comm)
{
	struct str *raw = str_get(comm, strnlen(comm, OTP_COMM_LEN)), *clean;

	clean = raw ? clean_str(raw, OTP_COMM_LEN) : NULL;
	str_put(raw);
	return clean;
}

/* Without memory, a text is left out. */
static void builder_set_attributes(const struct profile_builder *b, const struct profile_sample *s,
				   struct sample_key *key)
{
	if (builder_selects(b, SAMPLE_ATTRIBUTE_PID))
		key->pid = s->pid;
	if (builder_selects(b, SAMPLE_ATTRIBUTE_THREAD_ID))
		key->tid = s->tid;
	if (builder_selects(b, SAMPLE_ATTRIBUTE_CPU))
		key->cpu = s->cpu;
	if (builder_selects(b, SAMPLE_ATTRIBUTE_EXECUTABLE) && s->exe)
		key->exe = clean_str(s->exe, NAME_MAX);
	if (builder_selects(b, SAMPLE_ATTRIBUTE_THREAD_NAME) && s->comm)
		key->comm = builder_clean_comm(s->comm);
	if (builder_selects(b, SAMPLE_ATTRIBUTE_LABELS))
		key->labels = str_ref(s->labels);
}

int builder_count(struct profile_builder *b, const struct sample_key *key, const struct sample_count *count)
{
	uint32_t number;
	int r = array_reserve(&b->counts, b->samples.count, &b->counts_cap, sizeof(*b->counts));

	if (r == 0)
		r = intern_add(&b->samples, key, sizeof(*key), &number);
	if (r < 0)
		return r;
	if (r > 0) {
		sample_key_ref(key);
		b->counts[number] = (struct sample_count){0};
	}
	b->counts[number].samples += count->samples;
	b->counts[number].value += count->value;
	for (int i = 0; i < FRAME_GUESS_NR; i++)
		b->counts[number].guessed[i] += count->guessed[i];
	b->total.of[key->slot] += count->samples;
	return 0;
}

int profile_add(struct profile_builder *b, const struct profile_sample *s)
{
	_cleanup_(sample_key_put) struct sample_key key = {.slot = s->slot};
	struct sample_count one = {.samples = 1, .value = s->value};
	int r;

	r = builder_add_workload(b, s->workload, &key.workload);
	if (r == 0)
		r = builder_add_stack(b, s, &key, &one);
	if (r < 0)
		return r;
	builder_set_attributes(b, s, &key);
	return builder_count(b, &key, &one);
}

uint64_t profile_samples(const struct profile_builder *b)
{
	return ledger_counts_total(&b->total);
}

size_t profile_bytes(const struct profile_builder *b)
{
	return sizeof(*b) + intern_memory(&b->locations) + intern_memory(&b->stacks) +
	       intern_memory(&b->samples) + intern_memory(&b->workloads) + share_memory(&b->text) +
	       b->counts_cap * sizeof(*b->counts) + b->users_cap * sizeof(*b->users) + b->images.cap * sizeof(*b->images.list) +
	       (b->images.by_file.cap + b->images.by_identity.cap) * sizeof(struct map_slot);
}

void profile_top(const struct profile_builder *b, struct profile_top *ret)
{
	*ret = b->top;
}

void profile_stats(const struct profile_builder *b, struct profile_stats *ret)
{
	*ret = b->stats;
}
