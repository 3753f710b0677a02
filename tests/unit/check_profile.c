// SPDX-License-Identifier: Apache-2.0
/* Profiles: what was added comes out of the encoding, and only that. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "profile/clean.h"
#include "profile/profile.h"
#include "profile/share.h"

#define REQUEST(name)  Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest##name
#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name
#define unpack_request \
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack
#define free_request \
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked

#define START_NS 1700000000000000000ULL
#define HALF     0xffff800000000000ULL
#define REQUESTS_MAX 512

typedef REQUEST() Request;
typedef PROFILES(ProfilesDictionary) Dictionary;
typedef PROFILES(Profile) Profile;

/* A world of one process: a file without a binary, an anonymous mapping, two workloads. */
static struct symbolizer *symbols;
static struct kernel_symbols *kernel;
static struct profile_builder *builder;
static struct profile_config config;
static struct workload *web, *db;
static struct mapped_file *file, *anon;
static struct mapping file_map, anon_map;
static struct {
	uint32_t count;
	struct frame frames[PROFILE_FRAMES_MAX];
} *stack;

/* What the encoding handed out. */
static Request *requests[REQUESTS_MAX];
static size_t lengths[REQUESTS_MAX];
static uint64_t counted[REQUESTS_MAX];
static unsigned nr_requests, fail_after;

static struct workload *make_workload(const char *service, const char *exe)
{
	struct attribute a[] = {
		{str_get_c("service.name"), str_get_c(service)},
		{str_get_c("process.executable.name"), str_get_c(exe)},
	};
	struct workload *w = NULL;

	ck_assert_int_eq(workload_get(a, 2, &w), 0);
	for (int i = 0; i < 2; i++) {
		str_put(a[i].key);
		str_put(a[i].value);
	}
	return w;
}

static struct mapped_file *make_file(const char *path, enum mapped_kind kind)
{
	struct mapped_file *f = calloc(1, sizeof(*f));

	ck_assert_ptr_nonnull(f);
	f->refs = 1;
	f->kind = (uint8_t)kind;
	f->state = MAPPED_FAILED;
	f->path = str_get_c(path);
	return f;
}

static struct kernel_symbols *make_kernel(const char *text)
{
	struct kernel_symbols *k = NULL;
	int fd = memfd_create("kallsyms", 0);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(kernel_symbols_load(fd, &k), 0);
	close(fd);
	return k;
}

static void make_builder(uint32_t attributes, const struct profile_limits *limits)
{
	config = (struct profile_config){
		.limits = *limits,
		.attributes = attributes,
		.origins = origins_of_clock(50000000),
		.scope_version = "1.2.3",
		.symbols = symbols,
		.kernel = kernel,
	};

	profile_free(builder);
	ck_assert_int_eq(profile_new(&config, &builder), 0);
}

static void set_up(void)
{
	ck_assert_int_eq(symbolizer_new(&(struct symbol_limits){0}, &symbols), 0);
	kernel = make_kernel("ffffffff81000000 T _text\n"
			     "ffffffff81000100 T schedule\n"
			     "ffffffff81000200 t do_idle\n"
			     "ffffffffc0000000 t ext4_read\t[ext4]\n");
	web = make_workload("web", "nginx");
	db = make_workload("db", "postgres");
	file = make_file("/usr/lib/libfoo.so", MAPPED_FILE);
	anon = make_file("//anon", MAPPED_ANON);
	file_map = (struct mapping){.start = 0x7f0000000000, .end = 0x7f0000100000, .offset = 0x1000, .file = file};
	anon_map = (struct mapping){.start = 0x7e0000000000, .end = 0x7e0000100000, .file = anon};
	stack = calloc(1, sizeof(*stack));
	make_builder(PROFILE_ATTRIBUTES_DEFAULT, &(struct profile_limits){0});
}

static void drop_requests(void)
{
	while (nr_requests)
		free_request(requests[--nr_requests], NULL);
	fail_after = 0;
}

static void tear_down(void)
{
	drop_requests();
	builder = profile_free(builder);
	symbols = symbolizer_free(symbols);
	kernel = kernel_symbols_free(kernel);
	web = workload_put(web);
	db = workload_put(db);
	mapped_file_put(file);
	mapped_file_put(anon);
	free(stack);
}

static void push(const struct mapping *map, uint64_t offset, uint8_t flags)
{
	stack->frames[stack->count++] = (struct frame){.kind = KIND_NATIVE, .pc = (map ? map->start : 0) + offset, .map = map,
						       .flags = flags};
}

static void push_marker(enum unwind_end end)
{
	stack->frames[stack->count++] = (struct frame){.kind = KIND_MARKER, .marker = end};
}

/* Code that names itself; the caller's strings. */
static void push_code(enum frame_kind kind, struct str *function, struct str *source, uint32_t line)
{
	stack->frames[stack->count++] = (struct frame){.kind = (uint8_t)kind, .flags = FRAME_NAMED, .named_by = NAME_PERF_MAP,
						       .function = function, .file = source, .line = line, .column = 7,
						       .start_line = 3};
}

/* A stack of n frames in the file, leaf first, told apart by leaf. */
static void make_stack(uint64_t leaf, uint32_t n)
{
	stack->count = 0;
	push(&file_map, leaf, 0);
	for (uint32_t i = 1; i < n; i++)
		push(&file_map, 0x8000 + 0x10 * i, FRAME_CALLER);
}

/* Of the page faults' slot, worth so much. */
static int add_faults(struct workload *w, uint64_t value)
{
	struct profile_sample s = {.workload = w, .slot = 2, .value = value, .frames = stack->frames,
				   .nr_frames = stack->count};

	return profile_add(builder, &s);
}

static int add(struct workload *w, const uint64_t *k, uint32_t nr_kernel, struct str *exe)
{
	static struct frame all[PROFILE_FRAMES_MAX];
	struct profile_sample s = {.workload = w, .value = 1, .pid = 10, .tid = 11, .cpu = 2, .comm = "worker", .exe = exe,
				   .frames = all, .nr_frames = nr_kernel + stack->count};

	for (uint32_t i = 0; i < nr_kernel; i++)
		all[i] = (struct frame){.kind = KIND_KERNEL, .pc = k[i], .flags = i ? FRAME_CALLER : 0};
	memcpy(&all[nr_kernel], stack->frames, stack->count * sizeof(all[0]));
	return profile_add(builder, &s);
}

static int take(void *ctx, const void *data, size_t len, const struct ledger_counts *samples)
{
	if (fail_after && nr_requests == fail_after)
		return -ENOBUFS;
	ck_assert_uint_lt(nr_requests, REQUESTS_MAX);
	requests[nr_requests] = unpack_request(NULL, len, data);
	ck_assert_ptr_nonnull(requests[nr_requests]);
	lengths[nr_requests] = len;
	counted[nr_requests++] = ledger_counts_total(samples);
	return 0;
}

static int encode(uint64_t *lost)
{
	struct ledger_counts n;
	int r = profile_encode(builder, START_NS, START_NS + 5 * 1000000000ULL, take, NULL, &n);

	*lost = ledger_counts_total(&n);
	return r;
}

static void encode_all(void)
{
	uint64_t lost = 77;

	ck_assert_int_eq(encode(&lost), 0);
	ck_assert_uint_eq(lost, 0);
}

static const Profile *profile_at(unsigned request, unsigned resource)
{
	return requests[request]->resource_profiles[resource]->scope_profiles[0]->profiles[0];
}

static const char *name_of(const Dictionary *d, int32_t location)
{
	int32_t function = d->location_table[location]->lines[0]->function_index;

	return d->string_table[d->function_table[function]->name_strindex];
}

/* The n-th location with this name. */
static const PROFILES(Location) *location_of(const Dictionary *d, const char *name, unsigned n)
{
	for (size_t i = 1; i < d->n_location_table; i++)
		if (strcmp(name_of(d, (int32_t)i), name) == 0 && !n--)
			return d->location_table[i];
	ck_abort_msg("no location %s", name);
	return NULL;
}

/* "leaf;caller;root" of a sample. */
static const char *stack_text(const Dictionary *d, const PROFILES(Sample) *s)
{
	static char text[4096];
	const PROFILES(Stack) *st = d->stack_table[s->stack_index];

	text[0] = '\0';
	for (size_t i = 0; i < st->n_location_indices; i++) {
		strcat(text, i ? ";" : "");
		strcat(text, name_of(d, st->location_indices[i]));
	}
	return text;
}

static const char *attribute_of(const Dictionary *d, const int32_t *indices, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		const PROFILES(KeyValueAndUnit) *a = d->attribute_table[indices[i]];

		if (strcmp(d->string_table[a->key_strindex], key) == 0)
			return a->value->string_value;
	}
	return NULL;
}

START_TEST(profile_counts_equal_stacks_as_one_sample)
{
	for (int i = 0; i < 3; i++) {
		make_stack(0x100, 2);
		ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	}
	make_stack(0x200, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	ck_assert_uint_eq(profile_samples(builder), 4);
	encode_all();
	ck_assert_uint_eq(nr_requests, 1);
	ck_assert_uint_eq(counted[0], 4);
	ck_assert_uint_eq(profile_at(0, 0)->n_samples, 2);
	ck_assert_int_eq(profile_at(0, 0)->samples[0]->values[0] + profile_at(0, 0)->samples[1]->values[0], 4);
	ck_assert_uint_eq(profile_at(0, 0)->samples[0]->n_values, 1);
	ck_assert_uint_eq(profile_samples(builder), 0);
}
END_TEST

START_TEST(profile_has_one_resource_for_each_workload)
{
	make_stack(0x100, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	ck_assert_int_eq(add(db, NULL, 0, NULL), 0);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	ck_assert_uint_eq(requests[0]->n_resource_profiles, 2);
	ck_assert_str_eq(requests[0]->resource_profiles[0]->resource->attributes[0]->key, "service.name");
	ck_assert_str_eq(requests[0]->resource_profiles[0]->resource->attributes[0]->value->string_value, "web");
	ck_assert_int_eq(profile_at(0, 0)->samples[0]->values[0], 2);
	ck_assert_int_eq(profile_at(0, 1)->samples[0]->values[0], 1);
	/* The stack is the same, and there once. */
	ck_assert_uint_eq(requests[0]->dictionary->n_stack_table, 2);
}
END_TEST

START_TEST(profile_says_what_and_when)
{
	const Dictionary *d;
	const Profile *p;

	make_stack(0x100, 1);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	p = profile_at(0, 0);
	ck_assert_str_eq(d->string_table[p->sample_type->type_strindex], "samples");
	ck_assert_str_eq(d->string_table[p->sample_type->unit_strindex], "count");
	ck_assert_str_eq(d->string_table[p->period_type->type_strindex], "cpu");
	ck_assert_str_eq(d->string_table[p->period_type->unit_strindex], "nanoseconds");
	ck_assert_int_eq(p->period, 50000000);
	ck_assert_uint_eq(p->time_unix_nano, START_NS);
	ck_assert_uint_eq(p->duration_nano, 5000000000ULL);
	ck_assert_uint_eq(p->profile_id.len, 16);
	ck_assert_str_eq(requests[0]->resource_profiles[0]->scope_profiles[0]->scope->name, "otprof");
	ck_assert_str_eq(requests[0]->resource_profiles[0]->scope_profiles[0]->scope->version, "1.2.3");
}
END_TEST

START_TEST(dictionary_tables_begin_with_zero_entries)
{
	const Dictionary *d;

	make_stack(0x100, 1);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_str_eq(d->string_table[0], "");
	ck_assert_int_eq(d->mapping_table[0]->filename_strindex, 0);
	ck_assert_uint_eq(d->location_table[0]->n_lines, 0);
	ck_assert_int_eq(d->function_table[0]->name_strindex, 0);
	ck_assert_ptr_null(d->attribute_table[0]->value);
	ck_assert_uint_eq(d->stack_table[0]->n_location_indices, 0);
	ck_assert_uint_eq(d->n_link_table, 1);
	ck_assert_uint_eq(d->link_table[0]->trace_id.len, 16);
}
END_TEST

START_TEST(frames_of_a_file_are_named_by_path_and_offset)
{
	const Dictionary *d;
	const PROFILES(Location) *l;

	make_stack(0x234, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	/* The caller's address lies inside its call. */
	ck_assert_str_eq(stack_text(d, profile_at(0, 0)->samples[0]), "libfoo.so+0x1234;libfoo.so+0x900f");
	l = d->location_table[d->stack_table[1]->location_indices[0]];
	ck_assert_uint_eq(l->address, 0x1234);
	ck_assert_str_eq(d->string_table[d->mapping_table[l->mapping_index]->filename_strindex], "/usr/lib/libfoo.so");
	ck_assert_str_eq(attribute_of(d, l->attribute_indices, l->n_attribute_indices, "profile.frame.type"), "native");
}
END_TEST

START_TEST(kernel_addresses_are_relative_to_their_module)
{
	const uint64_t k[] = {0xffffffffc0000010, 0xffffffff81000101, 0xffffffff81000200};
	const Dictionary *d;

	make_stack(0x100, 1);
	ck_assert_int_eq(add(web, k, 3, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	/* The last one is a return address: its call ends schedule. */
	ck_assert_str_eq(stack_text(d, profile_at(0, 0)->samples[0]), "ext4_read;schedule;schedule;libfoo.so+0x1100");
	for (size_t i = 0; i < d->n_location_table; i++)
		ck_assert_uint_lt(d->location_table[i]->address, HALF);
	ck_assert_uint_eq(d->location_table[1]->address, 0x10);
	ck_assert_str_eq(d->string_table[d->mapping_table[d->location_table[1]->mapping_index]->filename_strindex], "ext4");
	ck_assert_str_eq(attribute_of(d, d->location_table[1]->attribute_indices, 1, "profile.frame.type"), "kernel");
}
END_TEST

START_TEST(kernel_stack_without_symbols_is_one_frame)
{
	const uint64_t k[] = {0xffffffffc0000010, 0xffffffff81000101};

	config.kernel = NULL;
	make_stack(0x100, 1);
	ck_assert_int_eq(add(web, k, 2, NULL), 0);
	encode_all();
	ck_assert_str_eq(stack_text(requests[0]->dictionary, profile_at(0, 0)->samples[0]), "[kernel];libfoo.so+0x1100");
}
END_TEST

START_TEST(cut_stack_ends_in_its_marker)
{
	make_stack(0x100, 1);
	push_marker(UNWIND_SHORT);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	ck_assert_str_eq(stack_text(requests[0]->dictionary, profile_at(0, 0)->samples[0]),
			 "libfoo.so+0x1100;[cut: stack deeper than its copy]");
}
END_TEST

START_TEST(sample_without_frames_still_has_a_stack)
{
	stack->count = 0;
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	ck_assert_str_eq(stack_text(requests[0]->dictionary, profile_at(0, 0)->samples[0]), "[no stack]");
}
END_TEST

START_TEST(generated_and_unmapped_code_keep_one_name_each)
{
	const Dictionary *d;

	stack->count = 0;
	push(&anon_map, 0x40, 0);
	push(&anon_map, 0x90, FRAME_CALLER);
	push(NULL, 0x1234, FRAME_CALLER);
	push(NULL, 0xffffffff81000000, FRAME_CALLER);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_str_eq(stack_text(d, profile_at(0, 0)->samples[0]), "[anon];[anon];[unknown];[unknown]");
	ck_assert_uint_eq(location_of(d, "[anon]", 0)->address, 0x7e0000000040);
	ck_assert_uint_eq(location_of(d, "[anon]", 1)->address, 0x7e000000008f);
	for (size_t i = 0; i < d->n_location_table; i++)
		ck_assert_uint_lt(d->location_table[i]->address, HALF);
}
END_TEST

static const char *type_of(const Dictionary *d, const PROFILES(Location) *l)
{
	return attribute_of(d, l->attribute_indices, l->n_attribute_indices, "profile.frame.type");
}

/* Each kind of frame says its own type; a marker is none, and has none. */
START_TEST(frames_of_every_kind_have_its_type)
{
	const uint64_t k = 0xffffffff81000104;
	struct str *name = str_get_c("a named function");
	const PROFILES(Location) *l;
	const Dictionary *d;

	stack->count = 0;
	push_code((enum frame_kind)_i, name, NULL, 0);
	push(&file_map, 0x100, FRAME_CALLER);
	push_marker(UNWIND_SHORT);
	ck_assert_int_eq(add(web, &k, 1, NULL), 0);
	str_put(name);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_str_eq(type_of(d, location_of(d, "a named function", 0)), frame_kind_type((enum frame_kind)_i));
	ck_assert_str_eq(type_of(d, location_of(d, "schedule", 0)), "kernel");
	ck_assert_str_eq(type_of(d, location_of(d, "libfoo.so+0x10ff", 0)), "native");
	l = location_of(d, "[cut: stack deeper than its copy]", 0);
	ck_assert_uint_eq(l->n_attribute_indices, 0);
	ck_assert_int_eq(l->mapping_index, 0);
}
END_TEST

/* Function, file, line and column are what tells code apart that names itself; also after a merge. */
START_TEST(code_that_names_itself_keeps_its_place)
{
	struct str *f = str_get_c("handler"), *g = str_get_c("/app/web.py"), *other = str_get_c("/app/db.py");
	struct profile_builder *to;
	struct ledger_counts lost;
	const PROFILES(Location) *l;
	const Dictionary *d;

	stack->count = 0;
	push_code(KIND_CPYTHON, f, g, 10);
	push_code(KIND_CPYTHON, f, g, 10);
	push_code(KIND_CPYTHON, f, g, 11);
	push_code(KIND_CPYTHON, f, other, 10);
	push_code(KIND_CPYTHON, f, NULL, 10);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	str_put(f);
	str_put(g);
	str_put(other);
	to = builder;
	builder = NULL;
	make_builder(0, &(struct profile_limits){0});
	profile_merge(builder, to, &lost);
	profile_free(to);
	ck_assert_uint_eq(ledger_counts_total(&lost), 0);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_str_eq(stack_text(d, profile_at(0, 0)->samples[0]), "handler;handler;handler;handler;handler");
	ck_assert_uint_eq(d->n_location_table, 1 + 4);
	l = d->location_table[d->stack_table[profile_at(0, 0)->samples[0]->stack_index]->location_indices[2]];
	ck_assert_int_eq(l->lines[0]->line, 11);
	ck_assert_int_eq(l->lines[0]->column, 7);
	ck_assert_int_eq(d->function_table[l->lines[0]->function_index]->start_line, 3);
	ck_assert_str_eq(d->string_table[d->function_table[l->lines[0]->function_index]->filename_strindex], "/app/web.py");
	ck_assert_uint_eq(l->address, 0);
}
END_TEST

static struct str *numbered_text(uint32_t number, size_t len)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "%u_", number);

	memset(text + n, 'x', len - (size_t)n);
	return str_get(text, len);
}

/* n frames of code in stacks of 500, whose functions and files are long and differ. */
static void add_long_code(struct workload *w, uint32_t n, size_t function_len, size_t file_len)
{
	for (uint32_t i = 0; i < n;) {
		for (stack->count = 0; stack->count < 500; i++)
			push_code(KIND_JIT, numbered_text(i, function_len), numbered_text(i, file_len), i);
		ck_assert_int_eq(add(w, NULL, 0, NULL), 0);
		for (uint32_t k = 0; k < stack->count; k++) {
			str_put(stack->frames[k].function);
			str_put(stack->frames[k].file);
		}
	}
}

static const char *file_of(const Dictionary *d, const PROFILES(Location) *l)
{
	return d->string_table[d->function_table[l->lines[0]->function_index]->filename_strindex];
}

/* Of 30 MB of names that one workload brings, the builder keeps a part; the rest are frames without a name. */
START_TEST(names_of_one_workload_leave_room_for_those_of_others)
{
	struct str *function = numbered_text(1000000, 200), *source = str_get_c("/app/other.js");
	size_t before = str_count();
	const Dictionary *d;

	make_builder(0, &(struct profile_limits){.request_bytes = 64u << 20});
	add_long_code(web, 20000, 1000, 500);
	ck_assert_uint_gt(profile_bytes(builder), 8u << 20);
	ck_assert_uint_lt(profile_bytes(builder), 24u << 20);
	stack->count = 0;
	push_code(KIND_JIT, function, source, 1);
	ck_assert_int_eq(add(db, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_str_eq(file_of(d, location_of(d, function->s, 0)), "/app/other.js");
	ck_assert_str_eq(type_of(d, location_of(d, "[unknown]", 0)), frame_kind_type(KIND_JIT));
	ck_assert_uint_eq(str_count(), before);
	str_put(function);
	str_put(source);
}
END_TEST

START_TEST(name_that_many_locations_share_is_counted_once)
{
	struct str *shared = numbered_text(1, 4000), *function = numbered_text(2, 100), *source = str_get_c("/app/web.js");
	const Dictionary *d;

	for (uint32_t i = 0; i < 10000;) {
		for (stack->count = 0; stack->count < 500; i++)
			push_code(KIND_JIT, shared, shared, i);
		ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	}
	stack->count = 0;
	push_code(KIND_JIT, function, source, 1);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_str_eq(file_of(d, location_of(d, function->s, 0)), "/app/web.js");
	ck_assert_str_eq(file_of(d, location_of(d, shared->s, 9999)), shared->s);
	str_put(shared);
	str_put(function);
	str_put(source);
}
END_TEST

/* Names that do not fit into the builder of the interval are merged without them, by the share of their workload. */
START_TEST(merged_names_have_the_share_of_their_workload)
{
	struct str *function = numbered_text(1000000, 200);
	struct profile_builder *from;
	struct ledger_counts lost;
	const Dictionary *d;

	make_builder(0, &(struct profile_limits){.request_bytes = 64u << 20});
	add_long_code(web, 20000, 1000, 500);
	stack->count = 0;
	push_code(KIND_JIT, function, NULL, 1);
	ck_assert_int_eq(add(db, NULL, 0, NULL), 0);
	from = builder;
	builder = NULL;
	make_builder(0, &(struct profile_limits){.request_bytes = 64u << 20});
	add_long_code(web, 20000, 900, 400);
	profile_merge(builder, from, &lost);
	ck_assert_uint_eq(ledger_counts_total(&lost), 0);
	ck_assert_uint_lt(profile_bytes(builder), 24u << 20);
	ck_assert_uint_lt(profile_bytes(from), 4u << 20);
	profile_free(from);
	encode_all();
	d = requests[0]->dictionary;
	location_of(d, function->s, 0);
	str_put(function);
}
END_TEST

static void on_quality(void *ctx, const struct workload *w, const struct str *exe, uint64_t samples,
		       const struct ledger_quality *q)
{
	*(struct ledger_quality *)ctx = *q;
}

START_TEST(quality_counts_guesses_and_kinds_as_samples_show_them)
{
	const uint64_t k = 0xffffffff81000104;
	struct ledger_quality q = {0};

	config.quality = on_quality;
	config.ctx = &q;
	make_stack(0x100, 4);
	stack->frames[1].guess = stack->frames[2].guess = FRAME_BY_FRAME_POINTER;
	stack->frames[3].guess = FRAME_BY_SCAN;
	push_marker(UNWIND_NO_RULE);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(add(web, &k, 1, NULL), 0);
	encode_all();
	ck_assert_uint_eq(q.frames, 15);
	ck_assert_uint_eq(q.kinds[KIND_NATIVE], 12);
	ck_assert_uint_eq(q.kinds[KIND_KERNEL], 3);
	ck_assert_uint_eq(q.kinds[KIND_MARKER], 0);
	ck_assert_uint_eq(q.guessed[FRAME_BY_FRAME_POINTER], 6);
	ck_assert_uint_eq(q.guessed[FRAME_BY_SCAN], 3);
	ck_assert_uint_eq(q.guessed[FRAME_BY_EPILOGUE], 0);
	ck_assert_uint_eq(q.stacks, 3);
	ck_assert_uint_eq(q.cut[UNWIND_NO_RULE], 3);
}
END_TEST

/* Of interpreted frames that were not copied, the native stack's end says nothing. */
START_TEST(quality_knows_a_cut_whatever_other_markers_follow)
{
	struct ledger_quality q = {0};

	config.quality = on_quality;
	config.ctx = &q;
	make_stack(0x100, 4);
	push_marker(UNWIND_SHORT);
	stack->frames[stack->count++] = (struct frame){.kind = KIND_MARKER, .marker = FRAME_MARKER_SHORT};
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	ck_assert_uint_eq(q.stacks, 1);
	ck_assert_uint_eq(q.cut[UNWIND_SHORT], 1);
	ck_assert_uint_eq(q.stacks_root, 0);
}
END_TEST

START_TEST(too_many_frames_are_refused)
{
	struct profile_sample s = {.workload = web, .value = 1, .frames = stack->frames, .nr_frames = PROFILE_FRAMES_MAX + 1};

	ck_assert_int_eq(profile_add(builder, &s), -E2BIG);
	ck_assert_uint_eq(profile_samples(builder), 0);
}
END_TEST

START_TEST(executable_that_the_resource_says_is_no_attribute)
{
	struct str *same = str_get_c("nginx"), *other = str_get_c("perl");
	const Profile *p;

	make_stack(0x100, 1);
	ck_assert_int_eq(add(web, NULL, 0, same), 0);
	make_stack(0x200, 1);
	ck_assert_int_eq(add(web, NULL, 0, other), 0);
	encode_all();
	p = profile_at(0, 0);
	ck_assert_uint_eq(p->samples[0]->n_attribute_indices, 0);
	ck_assert_uint_eq(p->samples[1]->n_attribute_indices, 1);
	ck_assert_str_eq(attribute_of(requests[0]->dictionary, p->samples[1]->attribute_indices, 1,
				      "process.executable.name"), "perl");
	str_put(same);
	str_put(other);
}
END_TEST

START_TEST(selected_attributes_tell_samples_apart)
{
	const PROFILES(KeyValueAndUnit) *a;
	const Profile *p;
	struct profile_sample s = {.value = 1, .workload = web, .tid = 1, .cpu = 3, .comm = "a\xff" "b",
				   .frames = stack->frames, .nr_frames = 1};

	make_builder(1u << SAMPLE_ATTRIBUTE_THREAD_ID | 1u << SAMPLE_ATTRIBUTE_THREAD_NAME, &(struct profile_limits){0});
	make_stack(0x100, 1);
	for (; s.tid <= 2; s.tid++)
		for (s.cpu = 0; s.cpu < 4; s.cpu++)
			ck_assert_int_eq(profile_add(builder, &s), 0);
	encode_all();
	p = profile_at(0, 0);
	ck_assert_uint_eq(p->n_samples, 2);
	ck_assert_int_eq(p->samples[0]->values[0], 4);
	ck_assert_uint_eq(p->samples[0]->n_attribute_indices, 2);
	ck_assert_str_eq(attribute_of(requests[0]->dictionary, p->samples[0]->attribute_indices, 1, "thread.name"), "a?b");
	a = requests[0]->dictionary->attribute_table[p->samples[0]->attribute_indices[1]];
	ck_assert_int_eq(a->value->int_value, 1);
}
END_TEST

START_TEST(labels_become_attributes_of_their_names)
{
	static const char text[] = "tenant\0acme\0which\0", cut[] = "tenant\0acme\0no value";
	struct profile_sample s = {.value = 1, .workload = web, .comm = "x", .frames = stack->frames, .nr_frames = 1};
	const Profile *p;

	make_stack(0x100, 1);
	s.labels = str_get(text, sizeof(text));
	ck_assert_int_eq(profile_add(builder, &s), 0);
	str_put(s.labels);
	s.labels = NULL;
	ck_assert_int_eq(profile_add(builder, &s), 0);
	s.labels = str_get(cut, sizeof(cut) - 1);
	ck_assert_int_eq(profile_add(builder, &s), 0);
	str_put(s.labels);
	encode_all();
	p = profile_at(0, 0);
	ck_assert_uint_eq(p->n_samples, 3);
	ck_assert_uint_eq(p->samples[0]->n_attribute_indices, 2);
	ck_assert_str_eq(attribute_of(requests[0]->dictionary, p->samples[0]->attribute_indices, 2,
				      "process.context.label.tenant"), "acme");
	ck_assert_str_eq(attribute_of(requests[0]->dictionary, p->samples[0]->attribute_indices, 2,
				      "process.context.label.which"), "");
	ck_assert_uint_eq(p->samples[1]->n_attribute_indices, 0);
	ck_assert_uint_eq(p->samples[2]->n_attribute_indices, 1);
}
END_TEST

START_TEST(a_creator_is_another_location_than_its_function)
{
	const PROFILES(ProfilesDictionary) *d;
	unsigned creators = 0;

	make_stack(0x100, 2);
	stack->frames[1].flags |= FRAME_CREATOR;
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	make_stack(0x100, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	ck_assert_uint_eq(profile_at(0, 0)->n_samples, 2);
	d = requests[0]->dictionary;
	for (size_t i = 0; i < d->n_string_table; i++)
		creators += !strncmp(d->string_table[i], "created by libfoo.so+0x", 23);
	ck_assert_uint_eq(creators, 1);
}
END_TEST

/* Of every attribute that is text: also where a merge passes it on. */
START_TEST(text_of_attributes_is_held_until_the_interval_ends)
{
	struct str *exe = str_get_c("perl");
	size_t before = str_count();
	struct profile_builder *from;
	struct ledger_counts lost;

	for (int i = 0; i < 2; i++) {
		make_builder((1u << SAMPLE_ATTRIBUTE_NR) - 1, &(struct profile_limits){0});
		make_stack(0x100, 1);
		ck_assert_int_eq(add(web, NULL, 0, exe), 0);
		ck_assert_int_eq(add(web, NULL, 0, exe), 0);
		ck_assert_uint_eq(str_count(), before + 1);
		ck_assert_uint_eq(exe->refs, 2);
		from = builder;
		builder = NULL;
		make_builder((1u << SAMPLE_ATTRIBUTE_NR) - 1, &(struct profile_limits){0});
		profile_merge(builder, from, &lost);
		profile_free(from);
		ck_assert_uint_eq(exe->refs, 2);
		encode_all();
		drop_requests();
		ck_assert_uint_eq(str_count(), before);
		ck_assert_uint_eq(exe->refs, 1);
	}
	str_put(exe);
}
END_TEST

static uint64_t sum_of_values(void)
{
	uint64_t sum = 0;

	for (unsigned r = 0; r < nr_requests; r++)
		for (size_t i = 0; i < requests[r]->n_resource_profiles; i++) {
			PROFILES(ScopeProfiles) *sp = requests[r]->resource_profiles[i]->scope_profiles[0];

			for (size_t k = 0; k < sp->n_profiles; k++)
				for (size_t j = 0; j < sp->profiles[k]->n_samples; j++)
					sum += (uint64_t)sp->profiles[k]->samples[j]->values[0];
		}
	return sum;
}

/* Every profile of a request names what it counts, by strings of this request. */
static void check_types(const Request *q)
{
	for (size_t i = 0; i < q->n_resource_profiles; i++) {
		const PROFILES(ScopeProfiles) *sp = q->resource_profiles[i]->scope_profiles[0];

		for (size_t k = 0; k < sp->n_profiles; k++) {
			const PROFILES(ValueType) *type = sp->profiles[k]->sample_type, *period = sp->profiles[k]->period_type;
			char *const *strings = q->dictionary->string_table;

			ck_assert_str_eq(strings[type->type_strindex], "samples");
			ck_assert_str_eq(strings[type->unit_strindex], "count");
			ck_assert_str_eq(strings[period->type_strindex], "cpu");
			ck_assert_str_eq(strings[period->unit_strindex], "nanoseconds");
		}
	}
}

START_TEST(requests_keep_within_their_bound)
{
	const size_t max = 2000 + (size_t)_i * 4001;

	make_builder(0, &(struct profile_limits){.request_bytes = max});
	for (int i = 0; i < 2000; i++) {
		make_stack(0x10 * (uint64_t)(i % 500), 20);
		ck_assert_int_eq(add(i % 3 ? web : db, NULL, 0, NULL), 0);
	}
	encode_all();
	ck_assert_uint_gt(nr_requests, 1);
	ck_assert_uint_eq(sum_of_values(), 2000);
	for (unsigned i = 0; i < nr_requests; i++) {
		ck_assert_uint_le(lengths[i], max);
		ck_assert_str_eq(requests[i]->dictionary->string_table[0], "");
		check_types(requests[i]);
	}
	/* Not much smaller either: the sizes are known, but for room that values may need. */
	ck_assert_uint_gt(lengths[0], max * 9 / 10 - 600);
}
END_TEST

START_TEST(each_origin_has_a_profile_of_its_own)
{
	struct origins origins = origins_of_clock(50000000);
	const Dictionary *d;
	const PROFILES(ScopeProfiles) *scope;

	origins.count = 3;
	origins.slot[2] = (struct origin_slot){.origin = OTP_ORIGIN_PAGE_FAULTS, .sampled = true, .period = 100};
	config.origins = origins;
	make_stack(0x100, 3);
	ck_assert_int_eq(add_faults(web, 70), 0);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	ck_assert_int_eq(add_faults(web, 30), 0);
	encode_all();
	d = requests[0]->dictionary;
	scope = requests[0]->resource_profiles[0]->scope_profiles[0];
	ck_assert_uint_eq(requests[0]->n_resource_profiles, 1);
	ck_assert_uint_eq(scope->n_profiles, 2);
	ck_assert_str_eq(d->string_table[scope->profiles[0]->sample_type->type_strindex], "samples");
	ck_assert_int_eq(scope->profiles[0]->samples[0]->values[0], 1);
	ck_assert_str_eq(d->string_table[scope->profiles[1]->sample_type->type_strindex], "page_faults");
	ck_assert_str_eq(d->string_table[scope->profiles[1]->period_type->type_strindex], "page_faults");
	ck_assert_str_eq(d->string_table[scope->profiles[1]->period_type->unit_strindex], "count");
	ck_assert_int_eq(scope->profiles[1]->period, 100);
	ck_assert_uint_eq(scope->profiles[1]->n_samples, 1);
	ck_assert_int_eq(scope->profiles[1]->samples[0]->values[0], 100);
	ck_assert_uint_eq(counted[0], 3);
	ck_assert_int_eq(scope->profiles[0]->samples[0]->stack_index, scope->profiles[1]->samples[0]->stack_index);
}
END_TEST

START_TEST(sample_larger_than_a_request_is_lost_alone)
{
	uint64_t lost = 0;

	make_builder(0, &(struct profile_limits){.request_bytes = 1200});
	make_stack(0x100, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	make_stack(0x200, 400);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	ck_assert_int_eq(encode(&lost), 0);
	ck_assert_uint_eq(lost, 2);
	ck_assert_uint_eq(sum_of_values(), 1);
}
END_TEST

START_TEST(refused_request_ends_the_encoding)
{
	uint64_t lost = 0;

	make_builder(0, &(struct profile_limits){.request_bytes = 2000});
	for (int i = 0; i < 500; i++) {
		make_stack(0x10 * (uint64_t)i, 10);
		ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	}
	fail_after = 2;
	ck_assert_int_eq(encode(&lost), -ENOBUFS);
	ck_assert_uint_eq(nr_requests, 2);
	ck_assert_uint_eq(lost, 500 - counted[0] - counted[1]);
	ck_assert_uint_eq(profile_samples(builder), 0);
}
END_TEST

START_TEST(sample_that_does_not_fit_is_refused_whole)
{
	make_builder(0, &(struct profile_limits){.stacks = 2, .frames = 5});
	make_stack(0x100, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	make_stack(0x200, 4);
	ck_assert_int_eq(add(web, NULL, 0, NULL), -ENOSPC);
	make_stack(0x300, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	make_stack(0x400, 1);
	ck_assert_int_eq(add(web, NULL, 0, NULL), -ENOSPC);
	make_stack(0x300, 2);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	ck_assert_uint_eq(profile_samples(builder), 3);
	encode_all();
	ck_assert_uint_eq(sum_of_values(), 3);
	/* Nor does it leave locations behind that no stack has. */
	ck_assert_uint_eq(requests[0]->dictionary->n_location_table, 1 + 3);
}
END_TEST

START_TEST(locations_of_one_request_are_in_order_of_address)
{
	const Dictionary *d;

	make_stack(0x300, 3);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	make_stack(0x100, 3);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	d = requests[0]->dictionary;
	ck_assert_uint_eq(d->n_location_table, 1 + 4);
	for (size_t i = 2; i < d->n_location_table; i++)
		ck_assert_uint_gt(d->location_table[i]->address, d->location_table[i - 1]->address);
}
END_TEST

START_TEST(large_workload_has_several_profiles)
{
	const PROFILES(ScopeProfiles) *sp;

	make_builder(0, &(struct profile_limits){.request_bytes = 64u << 20});
	for (uint64_t i = 0; i < 20000; i++) {
		make_stack(0, 1);
		push(&file_map, 0x100 + i % 200, FRAME_CALLER);
		push(&file_map, 0x100 + i / 200, FRAME_CALLER);
		ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	}
	encode_all();
	ck_assert_uint_eq(nr_requests, 1);
	sp = requests[0]->resource_profiles[0]->scope_profiles[0];
	ck_assert_uint_eq(sp->n_profiles, 2);
	ck_assert_uint_eq(sp->profiles[0]->n_samples, 16000);
	ck_assert_uint_eq(sp->profiles[1]->n_samples, 4000);
	ck_assert_int_ne(memcmp(sp->profiles[0]->profile_id.data, sp->profiles[1]->profile_id.data, 16), 0);
}
END_TEST

START_TEST(top_counts_a_recursive_function_once_a_sample)
{
	struct profile_top top;

	for (int i = 0; i < 3; i++) {
		stack->count = 0;
		push(&anon_map, 0x10, 0);
		push(&anon_map, 0x20, FRAME_CALLER);
		ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	}
	make_stack(0x100, 1);
	push(&anon_map, 0x10, FRAME_CALLER);
	ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
	encode_all();
	profile_top(builder, &top);
	ck_assert_str_eq(top.name, "[anon]");
	ck_assert_uint_eq(top.samples, 3);
	ck_assert_uint_eq(top.total, 4);
}
END_TEST

START_TEST(empty_interval_makes_no_request)
{
	encode_all();
	ck_assert_uint_eq(nr_requests, 0);
}
END_TEST

START_TEST(builder_memory_does_not_grow_with_intervals)
{
	size_t first = 0;

	for (int n = 0; n < 20; n++) {
		for (uint64_t i = 0; i < 1000; i++) {
			make_stack(i, 10);
			ck_assert_int_eq(add(web, NULL, 0, NULL), 0);
		}
		first = n ? first : profile_bytes(builder);
		ck_assert_uint_le(profile_bytes(builder), first);
		encode_all();
		drop_requests();
	}
	ck_assert_uint_eq(file->refs, 1);
	ck_assert_uint_eq(web->refs, 1);
}
END_TEST

static const struct {
	const char *in, *out;
	size_t max;
} texts[] = {
	{"plain", "plain", 100},
	{"caf\xc3\xa9", "caf\xc3\xa9", 100},
	{"caf\xc3\xa9", "caf", 4},
	{"a\nb\x7f", "a?b?", 100},
	{"\xff\xc0\x80", "???", 100},
	{"\xed\xa0\x80", "???", 100},
	{"\xf4\x90\x80\x80", "????", 100},
	{"\xc2\x85", "??", 100},
	{"cut \xe2\x82", "cut ??", 100},
	{"\xe2\x82\xac", "\xe2\x82\xac", 3},
	{"", "[unknown]", 100},
	{"   ", "[unknown]", 100},
};

START_TEST(text_leaves_as_clean_utf8)
{
	struct str *in = str_get_c(texts[_i].in), *out = clean_str(in, texts[_i].max);

	ck_assert_str_eq(out->s, texts[_i].out);
	ck_assert(utf8_is_clean(out->s, out->len));
	str_put(in);
	str_put(out);
}
END_TEST

static bool take_text(struct share *sh, uint32_t workload, uint32_t number, size_t len)
{
	struct str *s = numbered_text(number, len);
	bool taken = share_take(sh, workload, s);

	str_put(s);
	return taken;
}

START_TEST(share_of_a_workload_is_at_most_what_is_left)
{
	struct share sh = {.max = 1000};
	size_t before = str_count();

	ck_assert(take_text(&sh, 0, 1, 500));
	ck_assert(!take_text(&sh, 0, 2, 10));
	ck_assert(!take_text(&sh, 7, 3, 251));
	ck_assert(take_text(&sh, 7, 3, 250));
	ck_assert(take_text(&sh, 1, 4, 100));
	ck_assert(!take_text(&sh, 1, 5, 26));
	/* What is counted is there for all; NULL needs no room. */
	ck_assert(take_text(&sh, 0, 4, 100));
	ck_assert(share_take(&sh, 0, NULL));
	ck_assert_uint_eq(sh.used, 850);
	ck_assert_uint_eq(str_count(), before + 3);
	share_done(&sh);
	ck_assert_uint_eq(str_count(), before);
	ck_assert_uint_eq(sh.max, 1000);
	ck_assert(take_text(&sh, 0, 1, 500));
	share_done(&sh);
}
END_TEST

Suite *profile_suite(void);
Suite *profile_suite(void)
{
	Suite *s = suite_create("profile");
	TCase *t = tcase_create("encode"), *k = tcase_create("parts");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, profile_counts_equal_stacks_as_one_sample);
	tcase_add_test(t, profile_has_one_resource_for_each_workload);
	tcase_add_test(t, profile_says_what_and_when);
	tcase_add_test(t, dictionary_tables_begin_with_zero_entries);
	tcase_add_test(t, frames_of_a_file_are_named_by_path_and_offset);
	tcase_add_test(t, kernel_addresses_are_relative_to_their_module);
	tcase_add_test(t, kernel_stack_without_symbols_is_one_frame);
	tcase_add_test(t, cut_stack_ends_in_its_marker);
	tcase_add_loop_test(t, frames_of_every_kind_have_its_type, KIND_KERNEL, KIND_NR);
	tcase_add_test(t, code_that_names_itself_keeps_its_place);
	tcase_add_test(t, names_of_one_workload_leave_room_for_those_of_others);
	tcase_add_test(t, name_that_many_locations_share_is_counted_once);
	tcase_add_test(t, merged_names_have_the_share_of_their_workload);
	tcase_add_test(t, quality_counts_guesses_and_kinds_as_samples_show_them);
	tcase_add_test(t, quality_knows_a_cut_whatever_other_markers_follow);
	tcase_add_test(t, too_many_frames_are_refused);
	tcase_add_test(t, sample_without_frames_still_has_a_stack);
	tcase_add_test(t, generated_and_unmapped_code_keep_one_name_each);
	tcase_add_test(t, executable_that_the_resource_says_is_no_attribute);
	tcase_add_test(t, selected_attributes_tell_samples_apart);
	tcase_add_test(t, labels_become_attributes_of_their_names);
	tcase_add_test(t, a_creator_is_another_location_than_its_function);
	tcase_add_test(t, text_of_attributes_is_held_until_the_interval_ends);
	tcase_add_loop_test(t, requests_keep_within_their_bound, 0, 4);
	tcase_add_test(t, each_origin_has_a_profile_of_its_own);
	tcase_add_test(t, sample_larger_than_a_request_is_lost_alone);
	tcase_add_test(t, refused_request_ends_the_encoding);
	tcase_add_test(t, sample_that_does_not_fit_is_refused_whole);
	tcase_add_test(t, locations_of_one_request_are_in_order_of_address);
	tcase_add_test(t, large_workload_has_several_profiles);
	tcase_add_test(t, top_counts_a_recursive_function_once_a_sample);
	tcase_add_test(t, empty_interval_makes_no_request);
	tcase_add_test(t, builder_memory_does_not_grow_with_intervals);
	suite_add_tcase(s, t);
	tcase_add_test(k, share_of_a_workload_is_at_most_what_is_left);
	tcase_add_loop_test(k, text_leaves_as_clean_utf8, 0, (int)ARRAY_SIZE(texts));
	suite_add_tcase(s, k);
	return s;
}
