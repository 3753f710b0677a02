// SPDX-License-Identifier: Apache-2.0
/* Which process runs a runtime, its walks, and the names of its frames; decoders answer during the call, as in a replay. */
#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/engine/codes.h"
#include "daemon/engine/functions.h"
#include "daemon/engine/runtimes.h"
#include "daemon/engine/runtimes_state.h"
#include "fake_runtime.h"

Suite *runtimes_suite(void);

/* --- a runtime: a frame's word is the key, its line is at the key --- */

static uint32_t outer[16]; /* how many frames each one was shown further out */

static bool compiled[16]; /* whether each one was shown as run by compiled code */

static int fake_frame_of(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	const struct fake_code *code = (const void *)(uintptr_t)w->word[0];

	outer[w->index] = w->nr_outer;
	compiled[w->index] = w->compiled;
	if (w->word[0] == 1)
		return -EBADMSG;
	if (!w->word[0]) {
		ret->flags = RUNTIME_HIDDEN;
		return 0;
	}
	*ret = (struct runtime_frame){.key = w->word[0], .cookie[0] = w->word[1], .position = 3,
				      .flags = (w->last ? RUNTIME_ENTRY : 0) | (w->word[1] >> 32 & 1 ? RUNTIME_LINE : 0) |
					       (w->word[1] >> 33 ? RUNTIME_INNER : 0)};
	(void)code;
	return 0;
}

/* --- code of it: 256 bytes at any address that a multiple of 0x1000 precedes; a frame there is two words --- */

static uint64_t code_identity;
static bool code_is_gone, code_lacks_fp;
static uint64_t code_place; /* what a frame at 0x71040 says of itself; 0: nothing */
static const struct otp_walked *stack_walk; /* of the sample whose stack is unwound; NULL: none */
static uint64_t code_epoch; /* in which it is read; 0: it has none */
static uint64_t attached_epoch, attached_code_epoch;

/* A sample's epochs are its root's two words. */
static uint64_t fake_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	(void)a;
	if (!nr_root)
		return attached_epoch;
	return nr_root == 2 && code_epoch ? root[0] : 0;
}

static uint64_t fake_code_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	(void)a;
	if (!nr_root)
		return attached_code_epoch;
	return nr_root == 2 && code_epoch ? root[1] : 0;
}

static uint64_t stub_is_copy_of;

static int fake_code_at(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	if (code_is_gone || (pc & 0xfff) >= 0x100)
		return -ENOENT;
	ret->code.start = pc & ~0xfffULL;
	ret->code.end = ret->code.start + 0x100;
	ret->code.identity[0] = code_identity;
	ret->code.epoch = code_epoch;
	if (ret->code.start == 0x72000) {
		strcpy(ret->code.name, stub_is_copy_of ? "" : "[fake stub]");
		ret->code.copy_of = stub_is_copy_of;
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		const struct fake_code *code = (const void *)(uintptr_t)(m->reads ? 0 : code_identity);
		struct runtime_frame f = {.key = (uint64_t)(uintptr_t)(code + i), .cookie[0] = code[i].line};

		runtime_code_add_function(ret, &f);
		runtime_code_add_node(ret, (uint32_t)i, (uint32_t)i, 2);
	}
	runtime_code_add_row(ret, 0, 0);
	runtime_code_add_row(ret, 0x80, 1);
	return 0;
}

static int fake_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		     struct runtime_step *ret)
{
	uint64_t sp = at->reg[7];

	*ret = (struct runtime_step){.sp = sp + 16, .cfa = sp + 16, .flags = RUNTIME_STEP_FP};
	if (at->load(at->ctx, sp, &ret->fp) || at->load(at->ctx, sp + 8, &ret->pc))
		return -EFAULT;
	ret->place = at->pc == 0x71040 ? code_place : 0;
	return 0;
}

/* --- a second walk, whose root's first word is the key of what runs --- */

static bool has_more;

static int fake_attach_more(const struct runtime_file *of, struct memory *m, struct runtime_attached *ret,
			    char why[RUNTIME_WHY_MAX])
{
	int err = fake_attach(of, m, ret, why);

	if (has_more)
		ret->more = ret->walk;
	return err;
}

static void fake_context(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_context *ret)
{
	(void)a;
	if (w->nr_root == 2)
		ret->named = (struct runtime_frame){.key = w->root[0], .cookie[0] = w->root[1]};
}

static bool fake_lacks_fp(const struct runtime_attached *a, uint64_t pc)
{
	(void)a;
	return code_lacks_fp && pc >= 0x70000 && pc < 0x80000;
}

static uint32_t functions_end; /* the place at which each one ends; 0: it is not bounded */

static int fake_decode_bounded(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
			       struct runtime_function *ret)
{
	int err = fake_decode(a, m, f, ret);

	if (err || !functions_end)
		return err;
	ret->is_bounded = true;
	ret->lines[0] = (struct runtime_line){0, 11};
	ret->lines[1] = (struct runtime_line){functions_end, 0};
	ret->nr_lines = 2;
	return 0;
}

static struct runtime_ops ops = {.name = "fake", .label = "Fake", .kind = KIND_LUAJIT, .attach = fake_attach_more,
				       .decode = fake_decode_bounded, .frame = fake_frame_of, .library = "fake",
				       .context = fake_context, .named = "fake.name",
				       .epoch = fake_epoch, .code_epoch = fake_code_epoch,
				       .code = fake_code_at, .step = fake_step, .lacks_fp = fake_lacks_fp};
static const struct runtime_ops *const list[] = {&ops, NULL};

/* --- decoders that answer at once, of this process' memory --- */

static int memory_of_self(struct memory *m, uint64_t addr, void *to, size_t len)
{
	memcpy(to, (const void *)(uintptr_t)addr, len);
	return 0;
}

static struct memory memory = {.read = memory_of_self};
static uint32_t questions;
static uint64_t attached_start; /* of the mapping from which the bias follows */

static int replay_reads(void *ctx, const struct decoders_target *t, const struct runtime_frame *frame, struct memory **m,
			struct runtime_file *ret)
{
	questions += frame != NULL;
	attached_start = t->start;
	memory_question(&memory);
	*m = &memory;
	if (!frame)
		ret->bias = 0;
	return 0;
}

static const struct decoders_replay replay = {.reads = replay_reads};

static bool host_is_silent;

static int host_on_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	if (!host_is_silent)
		fn(ctx, 0, -1, &replay, sizeof(replay));
	return 0;
}

static void host_on_cancel(struct host *h, void *ctx)
{
}

static const struct host_ops host_ops = {.ask = host_on_ask, .cancel = host_on_cancel};
static struct host host = {.ops = &host_ops};

/* --- the engine's side --- */

static struct decoders *ds;
static struct runtimes *runtimes;
static struct ledger_engine ledger;
static struct mapped_file *file;
static struct mapping map;
static struct space *space;
static struct process process;
static struct unwind_stack stack;
static struct runtimes_stack out;
static struct fake_code codes[3] = {{"one", 10, 2}, {"two", 20, 0}, {"three", 30, 4}};
static char unknown[64];

static void on_unknown(void *ctx, uint32_t pid, const char *runtime, const char *why)
{
	snprintf(unknown, sizeof(unknown), "%u %s %s", pid, runtime, why);
}

static uint32_t walks_known; /* of which process */

static void on_walks(void *ctx, uint32_t pid)
{
	walks_known = pid;
}

static void make_process(void)
{
	file = mapped_file_new(MAPPED_FILE, "/usr/bin/fake", 13);
	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "fake", &file->binary), 0);
	file->state = MAPPED_READY;
	space = space_new();
	ck_assert_int_eq(space_map(&space, 0x1000, 0x9000, 0, file), 0);
	map = *space_find(space, 0x1000);
	process = (struct process){.pid = 42, .start_ns = 1, .exec_id = 7, .cgroup_id = 5, .space = space};
	stack = (struct unwind_stack){.count = 1};
	stack.frames[0] = (struct frame){.kind = KIND_NATIVE, .pc = 0x1100, .map = &map};
}

static void setup(void)
{
	const struct decoders_config cfg = {.host = &host, .epoll = -1};
	const struct runtimes_config own = {.ledger = &ledger, .bytes_max = 1 << 20, .unknown = on_unknown,
					    .walks = on_walks};
	struct runtimes_config with = own;

	fake_begin();
	decode_set_runtimes(fake_of_file, list);
	unknown[0] = '\0';
	walks_known = 0;
	code_identity = (uint64_t)(uintptr_t)codes;
	code_is_gone = code_lacks_fp = ops.leaves_fp = host_is_silent = false;
	code_place = 0;
	code_epoch = attached_epoch = attached_code_epoch = 0;
	stack_walk = NULL;
	has_more = false;
	questions = 0;
	ledger = (struct ledger_engine){0};
	make_process();
	ck_assert_int_eq(decoders_new(&cfg, &ds), 0);
	with.decoders = ds;
	ck_assert_int_eq(runtimes_new(&with, &runtimes), 0);
}

static void teardown(void)
{
	runtimes = runtimes_free(runtimes);
	ds = decoders_free(ds);
	space_put(space);
	mapped_file_put(file);
	decode_set_runtimes(NULL, NULL);
}

static void meet(void)
{
	runtimes_meet(runtimes, &process, &stack, NSEC_PER_SEC);
}

/* A sample with a walk of these words, two for each frame. */
static struct sample sample_of(uint32_t generation, uint32_t frames, const uint64_t (*words)[2])
{
	static struct {
		struct otp_walked head;
		uint64_t word[3 * 16];
	} walk;
	struct sample s = {.head = {.pid = 42, .arch = OTP_ARCH_X86_64}};

	walk.head = (struct otp_walked){.generation = generation, .frames = (uint16_t)frames, .frame_words = 3};
	for (uint32_t i = 0; i < frames; i++) {
		walk.word[3 * i] = 0x5000 + i;
		walk.word[3 * i + 1] = words[i][0];
		walk.word[3 * i + 2] = words[i][1];
	}
	s.walks[0] = &walk.head;
	return s;
}

static uint64_t key(int i)
{
	return (uint64_t)(uintptr_t)&codes[i];
}

static uint32_t generation_of(const struct process *p)
{
	struct otp_walks walks;

	ck_assert(runtimes_walks(runtimes, p, &walks));
	return walks.generation;
}

/* --- facts --- */

START_TEST(file_of_a_runtime_leads_to_walks)
{
	struct otp_walks walks;

	ck_assert(!runtimes_walks(runtimes, &process, &walks));
	meet();
	ck_assert_uint_eq(walks_known, 42);
	ck_assert(runtimes_walks(runtimes, &process, &walks));
	ck_assert_uint_eq(walks.start_ns, 1);
	ck_assert_uint_eq(walks.exec_id, 7);
	ck_assert_uint_eq(walks.plan[0].base, 4096);
	ck_assert_uint_eq(walks.plan[1].start, OTP_WALK_NONE);
	process.walks = walks.generation;
	ck_assert(!runtimes_walks(runtimes, &process, &walks));
	ck_assert_uint_eq(ledger.runtimes_attached, 1);
}
END_TEST

START_TEST(unknown_version_is_reported_once)
{
	struct runtimes_state s;
	struct otp_walks walks;

	fake_attach_err = -ENOTSUP;
	meet();
	ck_assert_str_eq(unknown, "42 Fake a version of tomorrow");
	unknown[0] = '\0';
	meet();
	ck_assert_str_eq(unknown, "");
	ck_assert(!runtimes_walks(runtimes, &process, &walks));
	ck_assert(runtimes_state(runtimes, &process, 0, &s));
	ck_assert(!s.walked);
	ck_assert_str_eq(s.state, "a version of tomorrow");
	ck_assert_uint_eq(ledger.runtimes_refused, 1);
}
END_TEST

/* The runtime maps a part of its file a second time, when the container of the process was not known yet, or by then. */
START_TEST(a_second_mapping_of_a_file_does_not_move_it)
{
	struct mapped_file *again = mapped_file_new(MAPPED_FILE, "/usr/bin/fake", 13);
	struct mapping second;

	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "fake", &again->binary), 0);
	again->state = MAPPED_READY;
	again->container = 5;
	ck_assert_int_eq(space_map(&process.space, 0x20000, 0x21000, 0x4000, again), 0);
	space = process.space;
	second = *space_find(space, 0x20000);
	stack.frames[0].map = &second;
	meet();
	ck_assert_uint_eq(ledger.runtimes_attached, 1);
	ck_assert_uint_eq(attached_start, 0x1000);
	mapped_file_put(again);
}
END_TEST

START_TEST(another_file_of_that_path_is_not_the_runtimes)
{
	struct mapped_file *other = mapped_file_new(MAPPED_FILE, "/usr/bin/fake", 13);
	struct mapping second;

	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "fake", &other->binary), 0);
	other->state = MAPPED_READY;
	other->build_id_len = file->build_id_len = 1;
	other->build_id[0] = 7;
	ck_assert_int_eq(space_map(&process.space, 0x20000, 0x21000, 0x4000, other), 0);
	space = process.space;
	second = *space_find(space, 0x20000);
	stack.frames[0].map = &second;
	meet();
	ck_assert_uint_eq(attached_start, 0x20000);
	mapped_file_put(other);
}
END_TEST

/* Two files of one process define the marker; the second one holds the runtime. */
START_TEST(file_without_the_runtime_leaves_its_place)
{
	struct mapped_file *library = mapped_file_new(MAPPED_FILE, "/usr/lib/libfake.so", 19);
	struct mapping second = {.start = 0x20000, .end = 0x30000, .file = library};
	struct otp_walks walks;

	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "library", &library->binary), 0);
	library->state = MAPPED_READY;
	fake_attach_err = -ENOENT;
	meet();
	meet();
	ck_assert_uint_eq(ledger.runtimes_refused, 1);
	fake_attach_err = 0;
	stack.frames[0].map = &second;
	meet();
	ck_assert(runtimes_walks(runtimes, &process, &walks));
	ck_assert_uint_eq(walks.plan[0].base, 4096);
	mapped_file_put(library);
}
END_TEST

/* The mapping of this program, whose tables name the functions of its loop. */
static void map_this_program(void)
{
	Dl_info at;

	ck_assert_int_ne(dladdr((void *)(uintptr_t)decode_set_runtimes, &at), 0);
	for (uint16_t i = 0; i < file->binary->nr_segments; i++) {
		const struct binary_segment *g = &file->binary->segments[i];
		uint64_t start = (uint64_t)(uintptr_t)at.dli_fbase + (g->vaddr & ~4095ULL);

		if (g->flags & PF_X)
			ck_assert_int_eq(space_map(&space, start, start + ALIGN_UP(g->filesz + (g->vaddr & 4095), 4096),
						   g->offset & ~4095ULL, file), 0);
	}
	process.space = space;
}

/* Compiled code in the innermost frame, the function of the loop, as a gate leads to it, and another one. */
static void make_compiled_stack(const struct mapping *generated)
{
	const struct mapping *program = space_find(space, fake_loop);

	stack.count = 3;
	stack.frames[0] = (struct frame){.kind = KIND_NATIVE, .pc = 0x500010, .map = generated};
	stack.frames[1] = (struct frame){.kind = KIND_NATIVE, .pc = fake_loop + 8, .flags = FRAME_CALLER,
					 .guess = FRAME_BY_SCAN, .map = program};
	stack.frames[2] = (struct frame){.kind = KIND_NATIVE, .pc = 0x1100, .map = &map};
}

START_TEST(compiled_code_belongs_to_the_loop_that_entered_it)
{
	struct mapped_file *anon = mapped_file_new(MAPPED_ANON, "//anon", 6);
	struct mapping generated = {.start = 0x500000, .end = 0x501000, .file = anon};
	struct unwind_gate gate[RUNTIME_GATES];
	struct merge_native native[3];
	struct sample s;

	fake_loop = (uint64_t)(uintptr_t)decode_set_runtimes + 4;
	fake_compiled = RUNTIME_JUMPED;
	map_this_program();
	ck_assert_uint_eq(runtimes_gates(runtimes, &process, gate), 0);
	meet();
	ck_assert_uint_eq(runtimes_gates(runtimes, &process, gate), 1);
	ck_assert(gate[0].jumps && gate[0].start == fake_loop - 4 && gate[0].end > fake_loop);
	make_compiled_stack(&generated);
	runtimes_loops(runtimes, &process, &stack, native);
	ck_assert_uint_eq(native[0].runtime, 1);
	ck_assert_uint_eq(native[1].runtime, 1);
	ck_assert_uint_ne(native[0].function, native[1].function);
	ck_assert_uint_eq(native[2].runtime, 0);
	s = sample_of(generation_of(&process), 2, (const uint64_t[][2]){{key(0), 10}, {key(2), 30}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, true, &out), 0);
	ck_assert(compiled[0]);
	stack.frames[1].guess = FRAME_BY_FRAME_POINTER;
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, true, &out), 0);
	ck_assert(!compiled[0]);
	mapped_file_put(anon);
}
END_TEST

START_TEST(frames_have_names_lines_and_files)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 3, (const uint64_t[][2]){{key(0), 10}, {0, 0}, {key(2), 30}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_uint_eq(out.nr, 1);
	ck_assert_uint_eq(out.half[0].nr, 3);
	ck_assert(out.half[0].whole);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "one");
	ck_assert_str_eq(out.half[0].frames[0].file->s, "/srv/one.fake");
	ck_assert_uint_eq(out.half[0].frames[0].line, 11);
	ck_assert_uint_eq(out.half[0].frames[0].kind, KIND_LUAJIT);
	ck_assert_uint_eq(out.half[0].frames[0].named_by, NAME_RUNTIME);
	ck_assert(out.half[0].flags[1] & RUNTIME_HIDDEN);
	ck_assert(out.half[0].flags[2] & RUNTIME_ENTRY);
}
END_TEST

START_TEST(a_frame_is_read_beside_those_further_out)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 3, (const uint64_t[][2]){{key(0), 10}, {0, 0}, {key(2), 30}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(outer[i], 2 - i);
}
END_TEST

START_TEST(function_is_asked_for_once)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 2, (const uint64_t[][2]){{key(0), 10}, {key(0), 10}});
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_uint_eq(questions, 1);
}
END_TEST

START_TEST(object_that_is_another_by_now_has_no_name)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 99}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "[Fake function]");
	ck_assert_uint_eq(out.half[0].frames[0].named_by, NAME_RAW);
	ck_assert_uint_eq(out.half[0].frames[0].line, 0);
	ck_assert_uint_eq(ledger.walk_frames_unknown, 1);
}
END_TEST

/* Its place is 3. */
START_TEST(a_frame_that_is_not_in_the_function_that_was_read_has_no_name)
{
	struct sample s;

	functions_end = 3 + _i;
	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	functions_end = 0;
	ck_assert_str_eq(out.half[0].frames[0].function->s, _i ? "one" : "[Fake function]");
	ck_assert_uint_eq(out.half[0].frames[0].line, _i ? 11 : 0);
	ck_assert_uint_eq(ledger.walk_frames_unknown, !_i);
}
END_TEST

START_TEST(a_line_of_no_file_is_left_out)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 1ULL << 32 | 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "[Fake function]");
	ck_assert_uint_eq(out.half[0].frames[0].line, 0);
}
END_TEST

START_TEST(walk_that_begins_amid_a_thread_is_not_whole)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 2, (const uint64_t[][2]){{key(0), 10}, {key(2), 2ULL << 32 | 30}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_uint_eq(out.half[0].nr, 2);
	ck_assert(!out.half[0].whole);
}
END_TEST

START_TEST(walk_ends_before_words_that_are_no_frame)
{
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 3, (const uint64_t[][2]){{key(0), 10}, {1, 0}, {key(2), 30}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_uint_eq(out.half[0].nr, 1);
	ck_assert(!out.half[0].whole);
}
END_TEST

START_TEST(fork_has_its_parents_runtime)
{
	struct process child = process;
	struct otp_walks walks;
	uint32_t generation;
	struct sample s;

	meet();
	generation = generation_of(&process);
	child.pid = 43;
	child.start_ns = 2;
	s = sample_of(generation, 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &child, &s, &stack, true, &out), 0);
	ck_assert_uint_eq(out.nr, 1);
	ck_assert(runtimes_walks(runtimes, &child, &walks));
	ck_assert_uint_ne(walks.generation, generation);
	ck_assert_uint_eq(walks.start_ns, 2);
}
END_TEST

START_TEST(process_that_is_young_or_has_ended_gets_no_decoder)
{
	struct decoders_figures figures;

	process.exec_time_ns = NSEC_PER_SEC - RUNTIME_YOUNG_NS + 1;
	meet();
	ck_assert(runtimes_is_expecting(runtimes, NSEC_PER_SEC));
	ck_assert(!runtimes_is_expecting(runtimes, NSEC_PER_SEC + 1));
	process.exec_time_ns = 1;
	process.exit_time_ns = NSEC_PER_SEC;
	meet();
	decoders_count(ds, &figures);
	ck_assert_uint_eq(figures.decoders, 0);
	process.exit_time_ns = 0;
	meet();
	decoders_count(ds, &figures);
	ck_assert_uint_eq(figures.decoders, 1);
}
END_TEST

START_TEST(fork_gets_a_decoder_when_it_is_older)
{
	struct process child = process;
	struct decoders_figures figures;
	struct otp_walks walks;
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	child.pid = 43;
	child.start_ns = NSEC_PER_SEC - 1;
	ck_assert_int_eq(runtimes_frames(runtimes, &child, &s, &stack, true, &out), 0);
	decoders_count(ds, &figures);
	ck_assert_uint_eq(figures.decoders, 1);
	ck_assert(runtimes_wait(runtimes, &child));
	ck_assert(!runtimes_walks(runtimes, &child, &walks));
	runtimes_meet(runtimes, &process, &stack, NSEC_PER_SEC + RUNTIME_YOUNG_NS);
	ck_assert_int_eq(runtimes_frames(runtimes, &child, &s, &stack, true, &out), 0);
	ck_assert(runtimes_walks(runtimes, &child, &walks));
	ck_assert(!runtimes_wait(runtimes, &child));
}
END_TEST

START_TEST(program_after_an_exec_has_none)
{
	struct process next = process;
	struct otp_walks walks;
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	next.exec_id = 8;
	ck_assert_int_eq(runtimes_frames(runtimes, &next, &s, &stack, true, &out), 0);
	ck_assert_uint_eq(out.nr, 0);
	ck_assert(!runtimes_walks(runtimes, &next, &walks));
}
END_TEST

/* --- code on the native stack --- */

static struct unwinder *unwinder;
static struct frame expanded[RUNTIMES_EXPANDED];

static void map_code(void)
{
	struct mapped_file *anon = mapped_file_new(MAPPED_ANON, "//anon", 6);

	ck_assert_int_eq(space_map(&process.space, 0x70000, 0x80000, 0, anon), 0);
	space = process.space;
	mapped_file_put(anon);
	ck_assert_int_eq(unwinder_new(NULL, &unwinder), 0);
}

static const struct unwind_code *begin_stack(uint64_t time_ns, uint64_t now_ns, const uint64_t *words, uint32_t len)
{
	static struct sample s;

	s = (struct sample){.head = {.time_ns = time_ns}, .walks = {stack_walk}, .stack = (const void *)words, .stack_len = len};
	return runtimes_begin_stack(runtimes, &process, &s, now_ns);
}

/* A stack of three frames in code: at 0x70090, called from 0x71040, called from the stub, which nobody called. */
static int unwind_code(uint64_t time_ns, bool final)
{
	static const uint64_t words[] = {0, 0x71040, 0, 0x72020, 0, 0};
	uint64_t reg[OTP_REGS_MAX] = {[7] = 0x10000, [16] = 0x70090};
	const struct mapping *wait;
	struct unwind_input in = {.arch = OTP_ARCH_X86_64, .space = process.space, .valid = 1 << 7 | 1 << 16, .reg = reg,
				  .stack_addr = 0x10000, .stack = (const void *)words, .stack_len = sizeof(words)};

	in.code = begin_stack(time_ns, time_ns, words, sizeof(words));
	return unwind_user(unwinder, &in, final, &stack, &wait);
}

static const char *expand(uint32_t i, uint32_t k)
{
	uint32_t n;

	ck_assert_int_eq(runtimes_stack(runtimes, &stack, false), 0);
	n = runtimes_expand(runtimes, &stack, i, expanded);
	return k < n ? expanded[k].function->s : "";
}

START_TEST(frames_in_code_are_left_and_named_as_the_runtime_says)
{
	map_code();
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_uint_eq(stack.count, 3);
	ck_assert_uint_eq(stack.frames[2].pc, 0x72020);
	ck_assert_uint_eq(stack.end, UNWIND_ROOT_LISTED);
	ck_assert_uint_eq(stack.guessed[FRAME_BY_FRAME_POINTER], 0);
	ck_assert_str_eq(expand(0, 0), "two");
	ck_assert_str_eq(expand(0, 1), "one");
	ck_assert_str_eq(expand(1, 0), "one");
	ck_assert_uint_eq(expanded[0].line, 11);
	ck_assert_uint_eq(expanded[0].kind, KIND_LUAJIT);
	ck_assert_str_eq(expand(2, 0), "[fake stub]");
	ck_assert_str_eq(expand(2, 1), "");
	unwinder_free(unwinder);
}
END_TEST

START_TEST(a_frame_that_says_where_it_is_is_named_so)
{
	map_code();
	code_place = 0x71090;
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_uint_eq(stack.count, 3);
	ck_assert_str_eq(expand(1, 0), "two");
	ck_assert_str_eq(expand(1, 1), "one");
	ck_assert_uint_eq(stack.frames[1].pc, 0x71040);
	unwinder_free(unwinder);
}
END_TEST

START_TEST(a_copy_of_code_of_a_file_is_shown_as_the_files)
{
	struct frame f;

	stub_is_copy_of = 0x2000;
	map_code();
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_str_eq(expand(2, 0), "");
	f = stack.frames[2];
	runtimes_set_original(runtimes, 2, &f);
	ck_assert_uint_eq(f.pc, 0x2020);
	ck_assert_ptr_eq(f.map->file, file);
	f = stack.frames[1];
	runtimes_set_original(runtimes, 1, &f);
	ck_assert_uint_eq(f.pc, 0x71040);
	stub_is_copy_of = 0;
	unwinder_free(unwinder);
}
END_TEST

START_TEST(a_full_table_of_functions_begins_anew_for_code_as_well)
{
	struct sample s;

	runtimes_limit(runtimes, 256u << 20);
	meet();
	for (uint64_t i = 0; i < FUNCTIONS_MAX; i++) {
		s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 11 + i}});
		ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	}
	map_code();
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_str_eq(expand(0, 0), "two");
	unwinder_free(unwinder);
}
END_TEST

/* Who has most, by regions and functions together, makes room. */
START_TEST(regions_of_one_process_cost_others_no_functions)
{
	struct process other = process;
	struct sample s;

	other.pid = 43;
	runtimes_meet(runtimes, &other, &stack, NSEC_PER_SEC);
	s = sample_of(generation_of(&other), 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &other, &s, &stack, false, &out), 0);
	map_code();
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_uint_gt(codes_bytes(), functions_bytes());
	runtimes_limit(runtimes, functions_bytes() + codes_bytes() - 1);
	ck_assert_uint_eq(codes_bytes(), 0);
	questions = 0;
	ck_assert_int_eq(runtimes_frames(runtimes, &other, &s, &stack, false, &out), 0);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "one");
	ck_assert_uint_eq(questions, 0);
	unwinder_free(unwinder);
}
END_TEST

START_TEST(code_that_is_another_by_now_is_not_named)
{
	const uint64_t seen = (1 + CODES_TRUST_SHARE) * NSEC_PER_SEC;

	map_code();
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_int_eq(unwind_code(seen, false), 0);
	code_identity = (uint64_t)(uintptr_t)&codes[1];
	ck_assert_int_eq(unwind_code(seen + CODES_TRUST_NS, false), 0);
	ck_assert_str_eq(expand(1, 0), "one");
	/* Read again; the first reading after that time shows other code, which was there when nobody looked. */
	process.exit_time_ns = 0;
	ck_assert_int_eq(unwind_code(seen + CODES_TRUST_NS + 5, false), 0);
	begin_stack(seen + CODES_TRUST_NS + 1, 0, NULL, 0);
	ck_assert_str_eq(expand(1, 0), "");
	ck_assert_int_eq(unwind_code(seen + CODES_TRUST_NS + 6, false), 0);
	ck_assert_str_eq(expand(1, 0), "two");
	unwinder_free(unwinder);
}
END_TEST

static void take_in_epochs(uint64_t epoch, uint64_t of_code)
{
	static struct {
		struct otp_walked head;
		uint64_t root[2];
	} walk;

	walk.head = (struct otp_walked){.generation = generation_of(&process), .root_words = 2, .frame_words = 3};
	walk.root[0] = epoch;
	walk.root[1] = of_code;
	stack_walk = &walk.head;
}

/* While functions stay, and their names with them. */
START_TEST(code_that_was_given_up_is_not_named_however_soon)
{
	code_epoch = 7;
	map_code();
	meet();
	take_in_epochs(5, 7);
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert_str_eq(expand(1, 0), "one");
	code_epoch = 9;
	code_identity = (uint64_t)(uintptr_t)&codes[1];
	take_in_epochs(5, 9);
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC + 1, false), 0);
	ck_assert_str_eq(expand(1, 0), "two");
	/* A sample of before that is judged only now. */
	take_in_epochs(5, 7);
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC - 1, true), 0);
	ck_assert_str_eq(expand(1, 0), "");
	unwinder_free(unwinder);
}
END_TEST

/* Attached to by this time, 8 s after it began; five epochs have passed. */
#define ATTACHED_NS (1 + 8 * NSEC_PER_SEC)

/* In these epochs of functions and of code; 0: there are none. */
static void attach_in_epochs(uint64_t epoch, uint64_t of_code)
{
	attached_epoch = epoch;
	attached_code_epoch = of_code;
	map_code();
	runtimes_meet(runtimes, &process, &stack, ATTACHED_NS);
}

/* The name of what a sample of this time ran, whose walk was not set yet; code is read in an epoch. */
static const char *named_before_walks(uint64_t epoch, uint64_t time_ns)
{
	code_epoch = epoch;
	ck_assert_int_eq(unwind_code(time_ns, true), 0);
	return expand(1, 0);
}

START_TEST(before_there_are_walks_code_is_of_the_epoch_of_attaching)
{
	attach_in_epochs(0, 6);
	ck_assert_str_eq(named_before_walks(6, ATTACHED_NS + 1), "one");
	ck_assert_str_eq(named_before_walks(6, ATTACHED_NS - NSEC_PER_SEC / 5), "one");
	unwinder_free(unwinder);
}
END_TEST

START_TEST(before_there_are_walks_code_of_a_later_epoch_is_not_named)
{
	attach_in_epochs(0, 6);
	ck_assert_str_eq(named_before_walks(8, ATTACHED_NS + 1), "");
	ck_assert_str_eq(named_before_walks(8, ATTACHED_NS - NSEC_PER_SEC / 5), "");
	unwinder_free(unwinder);
}
END_TEST

/* Six tenths of a second are more than an eighth of what its epochs take: one may have ended since. */
START_TEST(before_it_was_attached_to_a_sample_is_of_an_earlier_epoch)
{
	attach_in_epochs(6, 0);
	ck_assert_str_eq(named_before_walks(8, ATTACHED_NS - NSEC_PER_SEC / 5), "one");
	ck_assert_uint_eq(runtimes_peek(runtimes, &process)->slot[0].epoch, 6);
	named_before_walks(8, ATTACHED_NS - 3 * NSEC_PER_SEC / 5);
	ck_assert_uint_eq(runtimes_peek(runtimes, &process)->slot[0].epoch, 5);
	unwinder_free(unwinder);
}
END_TEST

static int load_nothing(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx, (void)addr, (void)ret;
	return -EFAULT;
}

/* Whether a sample of this epoch, in native code or the runtime's, may be of a collection. */
static bool begins(uint64_t epoch, uint64_t time_ns, bool in_code)
{
	static struct { struct otp_walked head; uint64_t root[2]; } walk;
	struct sample s = {.head = {.pid = 42, .arch = OTP_ARCH_X86_64, .time_ns = time_ns}};

	walk.head = (struct otp_walked){.generation = generation_of(&process), .root_words = 2, .frame_words = 1};
	walk.root[0] = walk.root[1] = code_epoch = epoch;
	s.walks[0] = &walk.head;
	runtimes_begin_stack(runtimes, &process, &s, time_ns);
	if (in_code) {
		const uint64_t reg[OTP_REGS_MAX] = {0};
		const struct unwind_code_frame f = {.pc = 0x70090, .exact = true, .reg = reg, .load = load_nothing};
		const struct mapping *wait = NULL;
		struct unwind_code_step step;

		runtimes->hook.step(runtimes->hook.ctx, &f, true, &step, &wait);
	}
	return runtimes_epoch_begins(runtimes, &runtimes_peek(runtimes, &process)->slot[0]);
}

/* The first epoch of all, and of a heap, began before; a later one, when the runtime's own code was seen to run. */
START_TEST(an_epoch_begins_in_each_heap_by_itself)
{
	const uint64_t first = 1ULL << 32, second = 2ULL << 32;

	meet();
	ck_assert(!begins(first | 5, 10, false));
	ck_assert(!begins(second | 1, 20, false));
	ck_assert(begins(second | 2, 30, false));
	ck_assert(begins(first | 6, 40, false));
	ck_assert(!begins(first | 5, 9, false));
	map_code();
	ck_assert(!begins(second | 2, 50, true));
	ck_assert(!begins(second | 2, 60, false));
	ck_assert(begins(second | 2, 45, false));
	ck_assert(begins(first | 6, 60, false));
	unwinder_free(unwinder);
}
END_TEST

/* As of many workers that come and go, beside one that stays. */
START_TEST(the_heap_that_was_sampled_longest_ago_makes_room)
{
	meet();
	ck_assert(!begins(1ULL << 32 | 5, 10, false));
	for (uint64_t heap = 2; heap < 3 * RUNTIMES_HEAPS; heap++) {
		ck_assert(!begins(heap << 32 | 1, 10, false));
		ck_assert(!begins(1ULL << 32 | 5, 10, false));
	}
	ck_assert_uint_eq(runtimes_peek(runtimes, &process)->slot[0].nr_runs, RUNTIMES_HEAPS);
}
END_TEST

/* A thread that gives up its heap and makes another one. */
START_TEST(an_epoch_that_falls_is_of_another_heap)
{
	const struct runtime_slot *s;

	meet();
	ck_assert(!begins(1ULL << 32 | 5, NSEC_PER_SEC, false));
	s = &runtimes_peek(runtimes, &process)->slot[0];
	/* A sample that had to wait is of before. */
	begins(1ULL << 32 | 4, NSEC_PER_SEC - 1, false);
	ck_assert_uint_eq(s->epoch, 1ULL << 32 | 4);
	begins(1ULL << 32 | 2, 2 * NSEC_PER_SEC, false);
	ck_assert_uint_eq(s->epoch, 0);
	begins(1ULL << 32 | 6, 3 * NSEC_PER_SEC, false);
	ck_assert_uint_eq(s->epoch, 0);
}
END_TEST

/* A page that is not in memory: it is no other heap, whatever the next samples say. */
START_TEST(an_epoch_that_cannot_be_read_is_at_least_that_of_an_earlier_sample)
{
	const struct runtime_slot *s;

	meet();
	begins(5, NSEC_PER_SEC, false);
	s = &runtimes_peek(runtimes, &process)->slot[0];
	begins(0, 2 * NSEC_PER_SEC, false);
	ck_assert_uint_eq(s->epoch, 5);
	ck_assert(s->epoch_is_bound);
	ck_assert_uint_eq(s->code_epoch, 0);
	begins(0, NSEC_PER_SEC / 2, false);
	ck_assert_uint_eq(s->epoch, 0);
	begins(6, 3 * NSEC_PER_SEC, false);
	ck_assert_uint_eq(s->epoch, 6);
	ck_assert(!s->epoch_is_bound);
}
END_TEST

START_TEST(unknown_code_is_guessed_at)
{
	map_code();
	code_is_gone = true;
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, false), 0);
	ck_assert(runtimes_read_code(runtimes));
	ck_assert_uint_eq(stack.count, 1);
	ck_assert_uint_eq(stack.end, UNWIND_SHORT);
	ck_assert_str_eq(expand(0, 0), "");
	unwinder_free(unwinder);
}
END_TEST

/* Not even by a frame pointer. */
static void expect_no_caller(bool final)
{
	map_code();
	ck_assert_int_eq(unwind_code(NSEC_PER_SEC, final), 0);
	ck_assert_uint_eq(stack.count, 1);
	ck_assert_uint_eq(stack.end, UNWIND_NO_RULE);
	unwinder_free(unwinder);
}

START_TEST(unknown_code_without_frame_pointers_is_not_guessed_at)
{
	code_is_gone = code_lacks_fp = true;
	expect_no_caller(false);
}
END_TEST

START_TEST(unknown_code_that_may_leave_the_frame_pointer_to_its_caller_is_not_guessed_at)
{
	code_is_gone = ops.leaves_fp = true;
	expect_no_caller(false);
}
END_TEST

START_TEST(code_of_a_runtime_that_is_not_known_yet_is_not_guessed_at)
{
	host_is_silent = true;
	expect_no_caller(true);
}
END_TEST

START_TEST(a_runtimes_library_is_wanted_before_its_code_is_left)
{
	const struct mapping *wait;
	uint64_t reg[OTP_REGS_MAX] = {[7] = 0x10000, [16] = 0x70090};
	struct unwind_input in = {.arch = OTP_ARCH_X86_64, .valid = 1 << 7 | 1 << 16, .reg = reg};

	map_code();
	file->state = MAPPED_NEW;
	in.space = process.space;
	in.code = begin_stack(NSEC_PER_SEC, NSEC_PER_SEC, NULL, 0);
	ck_assert_int_eq(unwind_user(unwinder, &in, false, &stack, &wait), -EAGAIN);
	ck_assert(wait && wait->file == file);
	ck_assert(!stack.code_pending);
	ck_assert_int_eq(unwind_user(unwinder, &in, true, &stack, &wait), 0);
	ck_assert_ptr_null(wait);
	unwinder_free(unwinder);
}
END_TEST

START_TEST(walks_that_nobody_knows_are_left_out)
{
	struct sample s = sample_of(77, 1, (const uint64_t[][2]){{key(0), 10}});

	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_uint_eq(out.nr, 0);
}
END_TEST

START_TEST(processes_are_bounded)
{
	struct process p = process;
	struct otp_walks walks;

	for (uint32_t i = 0; i < RUNTIME_PROCESSES_MAX + 10; i++) {
		p.pid = 100 + i;
		runtimes_meet(runtimes, &p, &stack, NSEC_PER_SEC);
	}
	p.pid = 100;
	ck_assert(!runtimes_walks(runtimes, &p, &walks));
}
END_TEST

/* One group's many processes make room for each other. */
START_TEST(a_crowded_group_leaves_others_their_places)
{
	struct process p = process;
	struct otp_walks walks;

	meet();
	for (uint32_t i = 0; i < 2 * RUNTIME_PROCESSES_MAX; i++) {
		p.pid = 100 + i;
		p.cgroup_id = 6;
		runtimes_meet(runtimes, &p, &stack, NSEC_PER_SEC);
	}
	ck_assert(runtimes_walks(runtimes, &process, &walks));
	ck_assert(runtimes_walks(runtimes, &p, &walks));
}
END_TEST

/* The parent of a full table's next fork was sampled longest ago. */
START_TEST(fork_of_the_oldest_has_its_runtime)
{
	struct process p = process, child = process;
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	for (uint32_t i = 1; i < RUNTIME_PROCESSES_MAX; i++) {
		p.pid = 100 + i;
		runtimes_meet(runtimes, &p, &stack, NSEC_PER_SEC);
	}
	child.pid = 43;
	child.start_ns = 2;
	ck_assert_int_eq(runtimes_frames(runtimes, &child, &s, &stack, true, &out), 0);
	ck_assert_uint_eq(out.nr, 1);
	ck_assert_uint_eq(generation_of(&process), s.walks[0]->generation);
}
END_TEST

/* Walks of an engine that is gone have a number that is another process' by now. */
START_TEST(walks_of_an_older_engine_make_nobody_anothers_fork)
{
	struct process child = process;
	struct otp_walks walks;
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	child.pid = 43;
	fake_base = 8192;
	ck_assert_int_eq(runtimes_frames(runtimes, &child, &s, &stack, true, &out), 0);
	ck_assert(runtimes_walks(runtimes, &child, &walks));
	ck_assert_uint_eq(walks.plan[0].base, 8192);
	child.pid = 44;
	child.start_ns = 0; /* older than whose fork it would be */
	ck_assert_int_eq(runtimes_frames(runtimes, &child, &s, &stack, true, &out), 0);
	ck_assert_uint_eq(out.nr, 0);
}
END_TEST

/* Of a sample whose second walk has this root. */
static struct str *labels_of(uint64_t of, uint64_t line)
{
	static struct {
		struct otp_walked head;
		uint64_t root[2];
	} walk;
	struct sample s = {.head = {.pid = 42, .arch = OTP_ARCH_X86_64}};
	struct runtimes_context context;

	walk.head = (struct otp_walked){.generation = generation_of(&process), .root_words = 2, .frame_words = 2, .plan = 1};
	walk.root[0] = of;
	walk.root[1] = line;
	s.walks[1] = &walk.head;
	ck_assert(runtimes_is_context(runtimes, &process, &s, 1));
	ck_assert_int_eq(runtimes_want_context(runtimes, &process, &s, false), 0);
	runtimes_context(runtimes, &process, &s, &stack, &context);
	return context.labels;
}

START_TEST(what_runs_is_a_label_that_a_decoder_names)
{
	static const char one[] = "fake.name\0one";
	struct str *labels;

	has_more = true;
	meet();
	labels = labels_of(key(0), 10);
	ck_assert_uint_eq(labels->len, sizeof(one));
	ck_assert_mem_eq(labels->s, one, sizeof(one));
	ck_assert_uint_eq(questions, 1);
	ck_assert_ptr_nonnull(labels_of(key(0), 10));
	ck_assert_uint_eq(questions, 1);
	/* Another is there by now, or nothing runs. */
	ck_assert_uint_eq(ledger.labels_left, 0);
	ck_assert_ptr_null(labels_of(key(0), 11));
	ck_assert_uint_eq(ledger.labels_left, 1);
	ck_assert_ptr_null(labels_of(0, 0));
	ck_assert_uint_eq(ledger.labels_left, 1);
}
END_TEST

/* More bytes than all may have: only the table that has the most is emptied. */
START_TEST(many_functions_of_one_process_cost_others_none)
{
	struct process p = process;
	struct sample s;

	meet();
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	p.pid = 43;
	runtimes_meet(runtimes, &p, &stack, NSEC_PER_SEC);
	for (uint64_t i = 0; i < 30000; i++) {
		s = sample_of(generation_of(&p), 1, (const uint64_t[][2]){{key(0), 11 + i}});
		ck_assert_int_eq(runtimes_frames(runtimes, &p, &s, &stack, false, &out), 0);
	}
	questions = 0;
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "one");
	ck_assert_uint_eq(questions, 0);
	ck_assert_uint_le(functions_bytes(), (1 << 20) + 65536);
}
END_TEST

/* More than a group may have decoders: those that were sampled longest ago give theirs away. */
START_TEST(processes_of_one_group_come_and_go)
{
	struct process p = process;
	struct runtimes_state state;
	struct sample s;

	for (uint32_t i = 0; i < RUNTIME_PROCESSES_MAX; i++) {
		p.pid = 100 + i;
		runtimes_meet(runtimes, &p, &stack, NSEC_PER_SEC);
		ck_assert(runtimes_state(runtimes, &p, 0, &state));
		ck_assert_msg(state.walked, "process %u: %s", i, state.state);
	}
	/* One of them runs again, and gets another decoder. */
	p.pid = 100;
	runtimes_meet(runtimes, &p, &stack, 100 * NSEC_PER_SEC);
	s = sample_of(generation_of(&p), 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &p, &s, &stack, false, &out), 0);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "one");
}
END_TEST

START_TEST(a_full_table_of_functions_begins_anew)
{
	struct sample s;

	meet();
	for (uint64_t i = 0; i < FUNCTIONS_MAX + 2; i++) {
		s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 11 + i}});
		ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	}
	s = sample_of(generation_of(&process), 1, (const uint64_t[][2]){{key(0), 10}});
	ck_assert_int_eq(runtimes_frames(runtimes, &process, &s, &stack, false, &out), 0);
	ck_assert_str_eq(out.half[0].frames[0].function->s, "one");
}
END_TEST

Suite *runtimes_suite(void)
{
	Suite *s = suite_create("runtimes");
	TCase *t = tcase_create("runtimes");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, file_of_a_runtime_leads_to_walks);
	tcase_add_test(t, unknown_version_is_reported_once);
	tcase_add_test(t, file_without_the_runtime_leaves_its_place);
	tcase_add_test(t, a_second_mapping_of_a_file_does_not_move_it);
	tcase_add_test(t, another_file_of_that_path_is_not_the_runtimes);
	tcase_add_test(t, compiled_code_belongs_to_the_loop_that_entered_it);
	tcase_add_test(t, frames_have_names_lines_and_files);
	tcase_add_test(t, a_frame_is_read_beside_those_further_out);
	tcase_add_test(t, function_is_asked_for_once);
	tcase_add_test(t, object_that_is_another_by_now_has_no_name);
	tcase_add_loop_test(t, a_frame_that_is_not_in_the_function_that_was_read_has_no_name, 0, 2);
	tcase_add_test(t, a_line_of_no_file_is_left_out);
	tcase_add_test(t, walk_that_begins_amid_a_thread_is_not_whole);
	tcase_add_test(t, walk_ends_before_words_that_are_no_frame);
	tcase_add_test(t, fork_has_its_parents_runtime);
	tcase_add_test(t, process_that_is_young_or_has_ended_gets_no_decoder);
	tcase_add_test(t, fork_gets_a_decoder_when_it_is_older);
	tcase_add_test(t, program_after_an_exec_has_none);
	tcase_add_test(t, walks_that_nobody_knows_are_left_out);
	tcase_add_test(t, frames_in_code_are_left_and_named_as_the_runtime_says);
	tcase_add_test(t, a_frame_that_says_where_it_is_is_named_so);
	tcase_add_test(t, a_copy_of_code_of_a_file_is_shown_as_the_files);
	tcase_add_test(t, a_full_table_of_functions_begins_anew_for_code_as_well);
	tcase_add_test(t, regions_of_one_process_cost_others_no_functions);
	tcase_add_test(t, code_that_is_another_by_now_is_not_named);
	tcase_add_test(t, code_that_was_given_up_is_not_named_however_soon);
	tcase_add_test(t, before_there_are_walks_code_is_of_the_epoch_of_attaching);
	tcase_add_test(t, before_there_are_walks_code_of_a_later_epoch_is_not_named);
	tcase_add_test(t, before_it_was_attached_to_a_sample_is_of_an_earlier_epoch);
	tcase_add_test(t, an_epoch_begins_in_each_heap_by_itself);
	tcase_add_test(t, the_heap_that_was_sampled_longest_ago_makes_room);
	tcase_add_test(t, an_epoch_that_falls_is_of_another_heap);
	tcase_add_test(t, an_epoch_that_cannot_be_read_is_at_least_that_of_an_earlier_sample);
	tcase_add_test(t, unknown_code_is_guessed_at);
	tcase_add_test(t, unknown_code_without_frame_pointers_is_not_guessed_at);
	tcase_add_test(t, unknown_code_that_may_leave_the_frame_pointer_to_its_caller_is_not_guessed_at);
	tcase_add_test(t, code_of_a_runtime_that_is_not_known_yet_is_not_guessed_at);
	tcase_add_test(t, a_runtimes_library_is_wanted_before_its_code_is_left);
	tcase_add_test(t, processes_are_bounded);
	tcase_add_test(t, a_crowded_group_leaves_others_their_places);
	tcase_add_test(t, fork_of_the_oldest_has_its_runtime);
	tcase_add_test(t, walks_of_an_older_engine_make_nobody_anothers_fork);
	tcase_add_test(t, many_functions_of_one_process_cost_others_none);
	tcase_add_test(t, processes_of_one_group_come_and_go);
	tcase_add_test(t, what_runs_is_a_label_that_a_decoder_names);
	tcase_add_test(t, a_full_table_of_functions_begins_anew);
	suite_add_tcase(s, t);
	return s;
}
