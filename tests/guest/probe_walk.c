// SPDX-License-Identifier: Apache-2.0
/*
 * Interpreters' frames: a program with lists as interpreters have them, made
 * before it is forked, so that the test knows each word of each section.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe_act.h"
#include "probe_loop.h"

#define WATCH_MS   400
#define STEPS_MAX  25 /* a busy machine gives few samples */
#define GRACE_MS   50 /* a tick under way may still see what was there before a change */
#define ENOUGH	   30
#define LIST_MAX   600
#define GENERATION 77u
#define WORDS_MAX  OTP_WALK_OUT

/* What a plan of the test finds. */
struct code {
	uint64_t first_line, names, other;
};

struct frame {
	uint64_t id, line;
	struct code *code;
	uint64_t unused;
	struct frame *next;
	uint64_t last;
};

struct stack { /* as Perl has them */
	uint64_t pad;
	struct frame *frames;
	int32_t top; /* index of the innermost frame */
	int32_t depth;
	struct stack *outer;
};

struct state {
	uint64_t id, depth;
	struct frame *frames;
	struct stack *stacks;
	struct code *known;
};

static struct frame frames[LIST_MAX];
static struct code codes[LIST_MAX], names[LIST_MAX];
static struct stack stacks[3];
static struct state state;
static __thread struct state *state_slot;

static uint64_t thread_base(void)
{
	uint64_t base;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(base));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(base));
#endif
	return base;
}

static uint64_t address_of(const volatile void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* --- what a section should hold --- */

struct expected {
	uint32_t frames, root_words, frame_words, end;
	uint64_t word[WORDS_MAX];
	uint32_t count;
};

static void expect(struct expected *e, uint64_t word)
{
	e->word[e->count++] = word;
}

/* The bound of bytes: a head, and room for another plan's, are not for frames. */
static uint32_t frames_that_fit(uint32_t list, uint32_t root_words, uint32_t frame_words)
{
	uint32_t room = OTP_WALK_BYTES / 8 - 21 - 3 - root_words;

	return MIN(list, MIN(room / frame_words, (uint32_t)OTP_WALK_FRAMES));
}

/* --- lists --- */

static void make_list(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		names[i] = (struct code){.first_line = 0x3000 + i, .names = 0x4000 + i};
		codes[i] = (struct code){.first_line = 100 + i, .names = address_of(&names[i]) | 1, .other = 0x5000 + i};
		frames[i] = (struct frame){.id = 0x1000 + i, .line = 0x2000 + i, .code = &codes[i], .last = 0x6000 + i,
					   .next = i + 1 < n ? &frames[i + 1] : NULL};
	}
	state = (struct state){.id = 0x7001, .depth = n, .frames = frames, .stacks = stacks, .known = &codes[n - 1]};
	state_slot = &state;
}

/* Words 0, 1 and 5 of a frame, the first line of its code, and of what its code's second word leads to, which is tagged. */
static struct otp_walk list_plan(void)
{
	return (struct otp_walk){
		.step = OTP_WALK_LINK, .nr_subs = 2, .link = 4, .keep = 1 << 0 | 1 << 1 | 1 << 5, .frames_max = OTP_WALK_FRAMES,
		.sub = {{.from = 0, .at = 2, .off = 0, .keep = 1}, {.from = 1, .at = 1, .tag = 7, .off = 8, .keep = 1}}};
}

static struct otp_walk tls_plan(void)
{
	struct otp_walk p = list_plan();

	p.start = OTP_WALK_TLS;
	p.base = address_of(&state_slot) - thread_base();
	p.nr_chain = 2;
	p.chain[1] = offsetof(struct state, frames);
	p.root_at = 1;
	p.root_keep = 3;
	p.via = offsetof(struct state, known);
	return p;
}

static struct otp_walk absolute_plan(uint16_t keep)
{
	struct otp_walk p = list_plan();

	p.start = OTP_WALK_AT;
	p.base = address_of(&state.frames);
	p.nr_chain = 1;
	p.keep = keep;
	return p;
}

static void expect_frame(struct expected *e, const struct otp_walk *p, const struct frame *f, const struct code *code,
			 const struct code *name)
{
	const uint64_t *word = (const void *)f;

	expect(e, address_of(f));
	for (uint32_t i = 0; i < sizeof(*f) / 8; i++)
		if (p->keep >> i & 1)
			expect(e, word[i]);
	expect(e, code->first_line);
	expect(e, name->names);
}

static void expect_list(struct expected *e, const struct otp_walk *p, uint32_t n)
{
	e->frame_words = 3 + (uint32_t)__builtin_popcount(p->keep);
	e->root_words = p->root_keep ? 2 + OTP_WALK_ROOT_MORE : 0;
	if (e->root_words) {
		expect(e, state.id);
		expect(e, state.depth);
		expect(e, state.known->first_line);
		expect(e, state.known->names);
		expect(e, state.known->other);
	}
	e->frames = frames_that_fit(n, e->root_words, e->frame_words);
	e->end = e->frames == n ? OTP_WALK_END_DONE : e->frames == OTP_WALK_FRAMES ? OTP_WALK_END_FRAMES : OTP_WALK_END_BYTES;
	for (uint32_t i = 0; i < e->frames; i++)
		expect_frame(e, p, &frames[i], frames[i].code, &names[i]);
}

/* --- watching --- */

struct walk_watch {
	pid_t pid;
	uint64_t start_ns, exec_id;
	const struct expected *expected[OTP_WALK_PLANS]; /* NULL: no section */
	uint32_t generation;
	unsigned int samples, wrong, walked;
	const char *error;
};

static const char *walk_error(const struct otp_walked *w, uint32_t len, const struct expected *e, uint32_t plan,
			      uint32_t generation)
{
	if (w->generation != generation || w->plan != plan || w->reserved)
		return "generation or plan";
	if (w->end != e->end)
		return "how it ended";
	if (w->frames != e->frames || w->root_words != e->root_words || w->frame_words != e->frame_words)
		return "counts";
	if (len != sizeof(*w) + e->count * sizeof(uint64_t))
		return "length";
	return memcmp(w + 1, e->word, e->count * sizeof(uint64_t)) ? "words" : NULL;
}

static const char *walks_error(const struct walk_watch *t, const struct otp_sample *s)
{
	const char *error = NULL;
	uint32_t nth = 0, len;

	for (uint32_t i = 0; i < OTP_WALK_PLANS && !error; i++) {
		const struct otp_walked *w;

		if (!t->expected[i])
			continue;
		w = sample_section_nth(s, OTP_SEC_WALK, nth++, &len);
		error = w ? walk_error(w, len, t->expected[i], i, t->generation) : "no section";
	}
	if (!error && sample_section_nth(s, OTP_SEC_WALK, nth, &len))
		error = "a section too many";
	return error;
}

static void see_walks(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct walk_watch *t = ctx;
	const char *error;
	uint32_t len;

	if (rec->type != OTP_REC_SAMPLE || s->pid != (uint32_t)t->pid || !sample_section(s, OTP_SEC_USTACK, &len))
		return;
	t->start_ns = s->start_ns;
	t->exec_id = s->exec_id;
	t->samples++;
	error = walks_error(t, s);
	t->wrong += error != NULL;
	t->error = error ? error : t->error;
}

static void see_nothing(void *ctx, const struct otp_rec *rec)
{
}

static int watch_more(struct session *s, struct walk_watch *t)
{
	int err;

	sleep_ms(GRACE_MS);
	err = session_drain(s, see_nothing, NULL);
	t->samples = t->wrong = 0;
	t->error = NULL;
	for (int i = 0; i < STEPS_MAX && err == 0 && t->samples < ENOUGH; i++)
		err = session_run(s, WATCH_MS, see_walks, t);
	return err;
}

#define CHECK_WATCH(s, t, what)                                                                     \
	do {                                                                                        \
		CHECK(watch_more(s, t) == 0, "%s: watching", what);                                 \
		CHECK((t)->samples >= ENOUGH, "%s: %u samples", what, (t)->samples);                \
		CHECK(!(t)->wrong, "%s: %s (%u of %u samples)", what, (t)->error, (t)->wrong, (t)->samples); \
	} while (0)

/* --- the process --- */

static void play_spin(struct act *act)
{
	child_make_stack(&act->stage, 0);
	act->stage.ip_start = address_of(spin_user_loop);
	act->stage.ip_end = address_of(spin_user_end);
	act->stage.sp = act->stage.stack_end - ACT_DEPTH;
	act->stage.ready = 1;
	spin_user(act->stage.sp, 0);
}

static void play_fork(struct act *act)
{
	pid_t pid = fork();

	if (pid == 0) {
		while (!act->pid)
			sleep_ms(5);
		play_spin(act);
	}
	act->pid = pid;
	for (;;)
		pause();
}

static void play_exec(struct act *act)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "otp-second", "--child", (char *)NULL);
		_exit(1);
	}
	act->pid = pid;
	act->stage.ready = 1;
	for (;;)
		pause();
}

static struct otp_plan plan_of(const struct walk_watch *t, uint8_t flags)
{
	return (struct otp_plan){.generation = GENERATION - 1, .start_ns = t->start_ns, .exec_id = t->exec_id, .flags = flags};
}

static struct otp_walks walks_of(const struct walk_watch *t, const struct otp_walk *first, const struct otp_walk *second)
{
	struct otp_walks w = {.generation = GENERATION, .start_ns = t->start_ns, .exec_id = t->exec_id, .plan = {*first}};

	if (second)
		w.plan[1] = *second;
	return w;
}

static enum verdict set_both(struct session *s, const struct walk_watch *t, uint32_t pid, const struct otp_walks *w)
{
	const struct otp_plan p = plan_of(t, OTP_PLAN_WALK);

	CHECK(otp_walk_sound(w), "the test's walks are not sound");
	CHECK(s->source->ops->set_walk(s->source, pid, w) == 0, "set_walk");
	CHECK(s->source->ops->set_plan(s->source, pid, &p) == 0, "set_plan");
	return PASSED;
}

static enum verdict watch_plans(struct session *s, pid_t pid, const struct otp_walk *first, const struct otp_walk *second,
				const struct expected *e0, const struct expected *e1)
{
	struct walk_watch t = {.pid = pid, .generation = GENERATION};
	struct otp_walks w;

	CHECK_WATCH(s, &t, "before there are walks");
	w = walks_of(&t, first, second);
	if (set_both(s, &t, (uint32_t)pid, &w) != PASSED)
		return FAILED;
	t.expected[0] = e0;
	t.expected[1] = e1;
	CHECK_WATCH(s, &t, "walking");
	t.expected[0] = t.expected[1] = NULL;
	CHECK(s->source->ops->set_walk(s->source, (uint32_t)pid, NULL) == 0, "set_walk");
	CHECK_WATCH(s, &t, "after they were removed");
	return PASSED;
}

static bool walks_here(void)
{
	return probe_ops()->set_walk;
}

static enum verdict play_plans(const struct otp_walk *first, const struct otp_walk *second, const struct expected *e0,
			       const struct expected *e1)
{
	struct source_config cfg = config_default();
	struct act *act = act_new();
	pid_t pid = act_begin(act, play_spin);
	enum verdict v = FAILED;
	struct session s;

	CHECK(pid > 0, "no child");
	if (session_open(&s, &cfg) == 0)
		v = watch_plans(&s, pid, first, second, e0, e1);
	session_close(&s);
	act_end(act, pid);
	return v;
}

/* --- tests --- */

static struct expected expected[2];

static enum verdict play_list(uint32_t n, const struct otp_walk *p)
{
	if (!walks_here())
		return SKIPPED;
	expected[0] = (struct expected){0};
	expect_list(&expected[0], p, n);
	return play_plans(p, NULL, &expected[0], NULL);
}

static enum verdict list_behind_storage_is_copied_word_by_word(void)
{
	struct otp_walk p;

	make_list(40);
	p = tls_plan();
	return play_list(40, &p);
}

static enum verdict list_behind_an_address_ends_at_the_bound_of_frames(void)
{
	struct otp_walk p = absolute_plan(0);

	make_list(LIST_MAX);
	return play_list(LIST_MAX, &p);
}

static enum verdict list_of_large_frames_ends_at_the_bound_of_bytes(void)
{
	struct otp_walk p = absolute_plan(0x3f);

	make_list(LIST_MAX);
	return play_list(LIST_MAX, &p);
}

static enum verdict two_plans_have_a_section_each(void)
{
	struct otp_walk first, second = absolute_plan(1);

	if (!walks_here())
		return SKIPPED;
	make_list(40);
	first = tls_plan();
	memset(expected, 0, sizeof(expected));
	expect_list(&expected[0], &first, 40);
	expect_list(&expected[1], &second, 40);
	return play_plans(&first, &second, &expected[0], &expected[1]);
}

/* A list of 40 frames, which is expected as a whole; the plan that walks it. */
static struct otp_walk expect_whole_list(void)
{
	struct otp_walk p = tls_plan();

	make_list(40);
	expected[0] = (struct expected){0};
	expect_list(&expected[0], &p, 40);
	return p;
}

static enum verdict missing_subs_are_zeros_and_an_unreadable_frame_ends_it(void)
{
	struct otp_walk p;

	if (!walks_here())
		return SKIPPED;
	p = expect_whole_list();
	frames[5].code = NULL;
	frames[7].code = (void *)(uintptr_t)0x1000;
	frames[9].next = (void *)(uintptr_t)0x2000;
	expected[0].frames = 10;
	expected[0].end = OTP_WALK_END_UNREADABLE;
	expected[0].count = expected[0].root_words + 10 * expected[0].frame_words;
	for (uint32_t i = 5; i <= 7; i += 2) {
		uint64_t *at = &expected[0].word[expected[0].root_words + i * expected[0].frame_words];

		at[0] = address_of(&frames[i]) | OTP_WALK_MISSING(0) | OTP_WALK_MISSING(1);
		at[4] = at[5] = 0;
	}
	return play_plans(&p, NULL, &expected[0], NULL);
}

/* Three stacks of 8, none and 12 frames, each with its innermost frame last. */
static void make_stacks(void)
{
	make_list(20);
	stacks[0] = (struct stack){.frames = frames, .top = 7, .outer = &stacks[1]};
	stacks[1] = (struct stack){.frames = frames, .top = -1, .outer = &stacks[2]};
	stacks[2] = (struct stack){.frames = frames + 8, .top = 11};
}

static enum verdict arrays_and_the_next_outer_ones_are_copied(void)
{
	struct otp_walk p = {.start = OTP_WALK_AT, .base = address_of(&state.stacks), .nr_chain = 1, .step = OTP_WALK_ARRAY,
			     .nr_subs = 2, .keep = 3, .frames_max = 100, .stride = -(int)sizeof(struct frame),
			     .outer = offsetof(struct stack, outer),
			     .first = {.at = offsetof(struct stack, frames), .count_at = offsetof(struct stack, top),
				       .scale = sizeof(struct frame)},
			     .last = {.at = offsetof(struct stack, frames)}};
	struct expected *e = &expected[0];

	if (!walks_here())
		return SKIPPED;
	make_stacks();
	memcpy(p.sub, list_plan().sub, sizeof(p.sub));
	*e = (struct expected){.frames = 20, .frame_words = 5, .end = OTP_WALK_END_DONE};
	for (int i = 7; i >= 0; i--)
		expect_frame(e, &p, &frames[i], &codes[i], &names[i]);
	for (int i = 19; i >= 8; i--)
		expect_frame(e, &p, &frames[i], &codes[i], &names[i]);
	return play_plans(&p, NULL, e, NULL);
}

static enum verdict watch_others(struct session *s, pid_t pid)
{
	struct walk_watch t = {.pid = pid, .generation = GENERATION};
	struct otp_walk p = tls_plan();
	struct otp_walks w;
	struct otp_plan any;

	CHECK_WATCH(s, &t, "before there are walks");
	any = plan_of(&t, OTP_PLAN_WALK);
	any.any_exec = 1;
	w = walks_of(&t, &p, NULL);
	w.exec_id++;
	CHECK(s->source->ops->set_walk(s->source, (uint32_t)pid, &w) == 0, "set_walk");
	CHECK(s->source->ops->set_plan(s->source, (uint32_t)pid, &any) == 0, "set_plan");
	CHECK_WATCH(s, &t, "walks of another exec");
	w.exec_id--;
	CHECK(s->source->ops->set_walk(s->source, (uint32_t)pid, &w) == 0, "set_walk");
	t.expected[0] = &expected[0];
	CHECK_WATCH(s, &t, "walks of this exec");
	any.flags = 0;
	CHECK(s->source->ops->set_plan(s->source, (uint32_t)pid, &any) == 0, "set_plan");
	t.expected[0] = NULL;
	CHECK_WATCH(s, &t, "a plan that does not say so");
	return PASSED;
}

static enum verdict walks_of_another_exec_or_without_the_flag_are_not_used(void)
{
	struct source_config cfg = config_default();
	struct act *act = act_new();
	enum verdict v = FAILED;
	struct session s;
	pid_t pid;

	if (!walks_here())
		return SKIPPED;
	expect_whole_list();
	pid = act_begin(act, play_spin);
	CHECK(pid > 0, "no child");
	if (session_open(&s, &cfg) == 0)
		v = watch_others(&s, pid);
	session_close(&s);
	act_end(act, pid);
	return v;
}

static enum verdict watch_family(struct session *s, pid_t parent, pid_t child, const struct expected *e)
{
	struct walk_watch of_parent = {.pid = parent}, of_child = {.pid = child, .generation = GENERATION};
	struct otp_walk p = tls_plan();
	struct otp_walks w;

	for (int i = 0; i < 50 && !of_parent.start_ns; i++) {
		kill(parent, SIGUSR1);
		CHECK(session_run(s, 100, see_walks, &of_parent) == 0, "watching");
	}
	CHECK(of_parent.start_ns, "no sample of the parent");
	w = walks_of(&of_parent, &p, NULL);
	if (set_both(s, &of_parent, (uint32_t)parent, &w) != PASSED)
		return FAILED;
	of_child.expected[0] = e;
	CHECK_WATCH(s, &of_child, "the child");
	return PASSED;
}

/* A signal makes the parent spin for a while, so that it is sampled. */
static void spin_for_a_while(int sig)
{
	for (volatile int i = 0; i < 30000000; i++)
		;
}

static enum verdict play_family(play_fn *play, const struct expected *e)
{
	struct source_config cfg = config_default();
	struct act *act = act_new();
	enum verdict v = FAILED;
	struct session s;
	pid_t pid;

	signal(SIGUSR1, spin_for_a_while);
	pid = act_begin(act, play);
	signal(SIGUSR1, SIG_DFL);
	CHECK(pid > 0, "no child");
	if (session_open(&s, &cfg) == 0)
		v = watch_family(&s, pid, act->pid, e);
	session_close(&s);
	act_end(act, pid);
	return v;
}

static enum verdict forked_child_has_the_walks_of_its_parent(void)
{
	if (!walks_here())
		return SKIPPED;
	expect_whole_list();
	return play_family(play_fork, &expected[0]);
}

static enum verdict child_with_a_program_of_its_own_has_no_walks(void)
{
	if (!walks_here())
		return SKIPPED;
	make_list(40);
	return play_family(play_exec, NULL);
}

/* --- cost --- */

/* An interpreter has its frames in the caches. */
static void play_touch(struct act *act)
{
	volatile uint64_t sum = 0;

	act->stage.ready = 1;
	for (;;)
		for (const struct frame *f = state.frames; f; f = f->next)
			sum += f->line + f->code->first_line;
}

struct cost {
	uint64_t ns, runs;
};

static struct cost cost_now(const struct session *s)
{
	struct cost c = {0};

	for (uint32_t cpu = 0; cpu < s->layout.cpus; cpu++) {
		struct otp_cpu_counters n = session_counters(s, cpu);

		c.ns += n.timed_ns;
		c.runs += n.timed_runs;
	}
	return c;
}

struct frames_watch {
	uint32_t pid, frames;
	unsigned int samples, right;
};

static void see_frames(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct frames_watch *t = ctx;
	const struct otp_walked *w;
	uint32_t len;

	if (rec->type != OTP_REC_SAMPLE || s->pid != t->pid)
		return;
	w = sample_section(s, OTP_SEC_WALK, &len);
	t->samples++;
	t->right += t->frames ? w && w->frames == t->frames : !w;
}

/* The least of several windows: in the others, someone else had the caches. */
static uint64_t cost_of(struct session *s, struct frames_watch *t)
{
	uint64_t least = 0;

	session_run(s, 200, see_nothing, NULL);
	t->samples = t->right = 0;
	for (int i = 0; i < 15; i++) {
		struct cost before = cost_now(s), after;
		uint64_t mean;

		session_run(s, 200, see_frames, t);
		after = cost_now(s);
		if (after.runs == before.runs)
			continue;
		mean = (after.ns - before.ns) / (after.runs - before.runs);
		least = least ? MIN(least, mean) : mean;
	}
	return least;
}

static enum verdict print_cost(struct session *s, pid_t pid)
{
	struct walk_watch t = {.pid = pid, .generation = GENERATION};
	struct frames_watch c = {.pid = (uint32_t)pid};
	const struct otp_plan quiet = {.generation = 1, .any_exec = 1, .select = OTP_SELECT_YES};
	struct otp_walk p = tls_plan();
	uint64_t off, on;
	struct otp_walks w;

	CHECK(s->source->ops->set_plan(s->source, (uint32_t)pid, &quiet) == 0, "set_plan");
	CHECK_WATCH(s, &t, "before there are walks");
	off = cost_of(s, &c);
	for (uint32_t n = 20; n <= 220; n += 200) {
		struct otp_plan plan = quiet;

		p.frames_max = (uint16_t)n;
		p.nr_subs = 1; /* as for Python */
		w = walks_of(&t, &p, NULL);
		plan.flags = OTP_PLAN_WALK;
		CHECK(s->source->ops->set_walk(s->source, (uint32_t)pid, &w) == 0, "set_walk");
		CHECK(s->source->ops->set_plan(s->source, (uint32_t)pid, &plan) == 0, "set_plan");
		c.frames = n;
		on = cost_of(s, &c);
		CHECK(c.right == c.samples, "%u of %u samples with %u frames", c.right, c.samples, n);
		printf("# a sample takes %llu ns, with %u frames %llu ns\n", (unsigned long long)off, n, (unsigned long long)on);
		CHECK(on > 0, "nothing was measured");
	}
	return PASSED;
}

static enum verdict walking_costs_so_much(void)
{
	struct source_config cfg = config_default();
	struct act *act = act_new();
	enum verdict v = FAILED;
	struct session s;
	pid_t pid;

	if (!walks_here())
		return SKIPPED;
	make_list(220);
	pid = act_begin(act, play_touch);
	CHECK(pid > 0, "no child");
	cfg.frequency_hz = 997;
	cfg.defaults.select = OTP_SELECT_NO;
	if (session_open(&s, &cfg) == 0)
		v = print_cost(&s, pid);
	session_close(&s);
	act_end(act, pid);
	return v;
}

const struct probe_test walk_tests[] = {
	{"list behind storage is copied word by word", list_behind_storage_is_copied_word_by_word},
	{"list behind an address ends at the bound of frames", list_behind_an_address_ends_at_the_bound_of_frames},
	{"list of large frames ends at the bound of bytes", list_of_large_frames_ends_at_the_bound_of_bytes},
	{"two plans have a section each", two_plans_have_a_section_each},
	{"missing subs are zeros, and an unreadable frame ends a walk",
	 missing_subs_are_zeros_and_an_unreadable_frame_ends_it},
	{"arrays and the next outer ones are copied", arrays_and_the_next_outer_ones_are_copied},
	{"walks of another exec, or without the plan's flag, are not used",
	 walks_of_another_exec_or_without_the_flag_are_not_used},
	{"forked child has the walks of its parent", forked_child_has_the_walks_of_its_parent},
	{"child with a program of its own has no walks", child_with_a_program_of_its_own_has_no_walks},
	{"walking costs so much", walking_costs_so_much},
	{NULL, NULL},
};
