// SPDX-License-Identifier: Apache-2.0
/* What a sample holds: registers, stacks, modes, chunks. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "probe.h"
#include "probe_loop.h"
#include "source/bpf_probe.h"

#define RUN_MS	 1500
#define RUNS_MAX 10 /* a guest may have little of its CPU */
#define ENOUGH	 50 /* samples */

struct view { /* a sample, taken apart */
	const struct otp_sample *s;
	const struct otp_regs *regs;
	const uint64_t *kstack;
	const struct otp_ustack *stack;
	uint32_t nr_kstack, stack_len;
};

struct watch {
	pid_t pid;
	const struct stage *stage;
	const char *(*check)(struct watch *w, const struct view *v); /* NULL: right */
	unsigned int samples, in_kernel, strays, wrong, chunks, whole;
	const char *error;
	uint64_t seq, next_addr, deep_bytes;
	uint32_t cpu;
};

static struct stage *stage_new(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void take_apart(const struct otp_sample *s, struct view *v)
{
	uint32_t len = 0;

	*v = (struct view){.s = s};
	v->regs = sample_section(s, OTP_SEC_REGS, &len);
	v->kstack = sample_section(s, OTP_SEC_KSTACK, &len);
	v->nr_kstack = v->kstack ? len / 8 : 0;
	v->stack = sample_section(s, OTP_SEC_USTACK, &len);
	v->stack_len = v->stack ? len - (uint32_t)sizeof(*v->stack) : 0;
}

static bool words_known(const void *bytes, uint32_t len, uint64_t addr)
{
	const uint64_t *word = bytes;

	for (uint32_t i = 0; i < len / 8; i++)
		if (word[i] != ((addr + 8 * i) ^ STACK_KEY))
			return false;
	return true;
}

/* Between its announcement and its loop, a child is for a few instructions elsewhere. */
static bool in_loop(const struct watch *w, const struct view *v)
{
	return v->regs && v->regs->reg[PROBE_PC] >= w->stage->ip_start && v->regs->reg[PROBE_PC] < w->stage->ip_end;
}

static const char *check_head(const struct view *v)
{
	const struct otp_sample *s = v->s;

	if (!s->start_ns || s->start_ns > s->time_ns)
		return "start_ns";
	if (s->time_ns > clock_now_ns() || clock_now_ns() - s->time_ns > 10 * NSEC_PER_SEC)
		return "time_ns";
	if (s->arch != PROBE_ARCH || s->rec.flags)
		return "arch or flags";
	if (!s->cgroup_id || !s->ppid || !s->tls_base)
		return "cgroup_id, ppid or tls_base";
	if (!(s->mode & OTP_MODE_KERNEL) != !v->kstack)
		return "a kernel stack without kernel mode or the reverse";
	if (v->kstack && (!v->nr_kstack || v->kstack[0] >> 63 == 0))
		return "kernel stack empty or not of the kernel";
	return NULL;
}

/* A fast system call before Linux 4.17 does not save rbx, rbp and r12 to r15 on x86-64; an interrupt does. */
static bool valid_is_right(const struct view *v)
{
	uint64_t all = (1ULL << PROBE_REGS) - 1;
	struct kernel_version version = {0};
	struct utsname uts;

	uname(&uts);
	kernel_version_parse(uts.release, uts.version, &version);
	if (PROBE_ARCH == OTP_ARCH_X86_64 && v->s->mode & OTP_MODE_KERNEL && kernel_version_below(&version, 4, 17, 0) &&
	    v->regs->valid == (all & ~0xf048ULL))
		return true;
	return v->regs->valid == all;
}

static const char *check_known_registers(const struct watch *w, const struct view *v, uint64_t known)
{
	if (!valid_is_right(v))
		return "valid mask";
	known &= v->regs->valid;
	if (v->regs->reg[PROBE_SP] != w->stage->sp)
		return "stack pointer";
	for (int i = 0; i < PROBE_REGS; i++)
		if ((known >> i & 1) && v->regs->reg[i] != REG_KEY + (uint64_t)i)
			return "a register";
	return NULL;
}

static const char *check_plain(struct watch *w, const struct view *v)
{
	const char *error = check_known_registers(w, v, PROBE_KNOWN);

	if (error)
		return error;
	if (v->s->mode & ~OTP_MODE_KERNEL)
		return "mode";
	if (v->stack->addr != w->stage->sp - OTP_RED_ZONE || v->stack_len != OTP_STACK_FLOOR)
		return "stack bounds";
	return words_known(v->stack + 1, v->stack_len, v->stack->addr) ? NULL : "stack bytes";
}

static const char *check_top(struct watch *w, const struct view *v)
{
	uint64_t addr = (w->stage->sp - OTP_RED_ZONE) & ~7ULL;

	if (!(v->s->mode & OTP_MODE_SHORT))
		return "not marked short";
	if (v->stack->addr != addr || v->stack->addr + v->stack_len != w->stage->stack_end)
		return "does not reach the mapping's end";
	return words_known(v->stack + 1, v->stack_len, v->stack->addr) ? NULL : "stack bytes";
}

static const char *check_bottom(struct watch *w, const struct view *v)
{
	if (v->stack->addr != w->stage->stack_start || v->stack_len != OTP_STACK_FLOOR)
		return "does not begin where the mapping does";
	return words_known(v->stack + 1, v->stack_len, v->stack->addr) ? NULL : "stack bytes";
}

static const char *check_compat(struct watch *w, const struct view *v)
{
	if (!(v->s->mode & OTP_MODE_COMPAT))
		return "not marked as 32-bit";
	for (int i = 0; i < PROBE_REGS; i++)
		if (!(v->regs->valid >> i & 1) && v->regs->reg[i])
			return "a register that is unknown is not zero";
	return v->regs->valid == 0x100ff && v->regs->reg[7] == w->stage->sp ? NULL : "registers";
}

static const char *check_deep(struct watch *w, const struct view *v)
{
	if (!(v->s->mode & OTP_MODE_CHUNKED) || v->stack_len != OTP_HEAD_STACK)
		return "not continued in chunks";
	w->seq = v->s->seq;
	w->cpu = v->s->cpu;
	w->next_addr = v->stack->addr + v->stack_len;
	return words_known(v->stack + 1, v->stack_len, v->stack->addr) ? NULL : "stack bytes";
}

/* Above the mapping there may be others, below where the stack is known to end: only what is ours is ours to know. */
static bool chunk_known(const struct watch *w, const struct otp_chunk *c)
{
	uint64_t end = w->stage->stack_end, ours = c->addr < end ? MIN((uint64_t)c->len, end - c->addr) : 0;

	if (ours && ours < c->len && !(c->rec.flags & OTP_CHUNK_HOLES))
		return false;
	return words_known(c + 1, (uint32_t)ours, c->addr);
}

static void see_chunk(struct watch *w, const struct otp_chunk *c)
{
	uint64_t first = w->stage->sp - OTP_RED_ZONE;

	if (!w->seq || c->seq != w->seq || c->cpu != w->cpu)
		return;
	w->chunks++;
	if (c->addr != w->next_addr || c->rec.len != sizeof(*c) + c->len || !chunk_known(w, c)) {
		w->wrong++;
		w->error = "a chunk";
	}
	w->next_addr += c->len;
	if ((c->rec.flags & OTP_CHUNK_LAST) && w->next_addr - first == w->deep_bytes)
		w->whole++;
}

static void see(void *ctx, const struct otp_rec *rec)
{
	struct watch *w = ctx;
	const char *error;
	struct view v;

	if (rec->type == OTP_REC_CHUNK)
		see_chunk(w, (const void *)rec);
	if (rec->type != OTP_REC_SAMPLE)
		return;
	take_apart((const void *)rec, &v);
	if (v.s->pid != (uint32_t)w->pid)
		return;
	w->seq = 0;
	if (!in_loop(w, &v)) {
		w->strays++;
		return;
	}
	w->samples++;
	w->in_kernel += v.s->mode & OTP_MODE_KERNEL;
	error = check_head(&v);
	if (!error)
		error = v.stack ? w->check(w, &v) : "no stack";
	w->wrong += error != NULL;
	w->error = error ? error : w->error;
}

struct setting {
	enum scene scene;
	const char *(*check)(struct watch *w, const struct view *v);
	uint32_t stack_bytes; /* by plan; 0: no plan */
};

static void see_identity(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct otp_plan *p = ctx;

	if (rec->type == OTP_REC_SAMPLE && s->pid == p->generation) {
		p->start_ns = s->start_ns;
		p->exec_id = s->exec_id;
	}
}

/* The identity of a process is known from its first sample. generation goes in as the pid. */
static struct otp_plan plan_for(struct session *s, pid_t pid)
{
	struct otp_plan p = {.generation = (uint32_t)pid};

	for (int i = 0; i < 50 && !p.start_ns; i++)
		session_run(s, 100, see_identity, &p);
	return p;
}

static int set_plan(struct session *s, pid_t pid, const struct setting *how)
{
	struct otp_plan p;

	if (!how->stack_bytes)
		return 0;
	p = plan_for(s, pid);
	p.stack_bytes = how->stack_bytes;
	return s->source->ops->set_plan(s->source, (uint32_t)pid, &p);
}

static void forget(void *ctx, const struct otp_rec *rec)
{
}

static enum verdict watch_scene(struct session *s, const struct setting *how, struct watch *w)
{
	struct stage *stage = stage_new();
	int err;

	w->stage = stage;
	w->check = how->check;
	w->deep_bytes = how->stack_bytes;
	w->pid = child_start(how->scene, stage, 0);
	err = set_plan(s, w->pid, how);
	if (err == 0)
		err = session_drain(s, forget, NULL);
	for (int i = 0; i < RUNS_MAX && err == 0 && w->samples < ENOUGH; i++)
		err = session_run(s, RUN_MS, see, w);
	child_end(w->pid);
	CHECK(err == 0, "error %d", err);
	CHECK(w->samples >= ENOUGH, "%u samples, %u strays", w->samples, w->strays);
	CHECK(w->strays <= 2 + w->samples / 100, "%u of %u samples outside the loop", w->strays, w->samples);
	CHECK(!w->wrong, "%s (%u of %u samples)", w->error, w->wrong, w->samples);
	return PASSED;
}

static enum verdict watch_setting(const struct setting *how, struct watch *w)
{
	struct source_config cfg = config_default();
	struct session s;
	enum verdict v = FAILED;

	if (session_open(&s, &cfg) == 0)
		v = watch_scene(&s, how, w);
	session_close(&s);
	return v;
}

static enum verdict user_registers_and_stack_are_exact(void)
{
	struct watch w = {0};
	enum verdict v = watch_setting(&(struct setting){SCENE_USER, check_plain, 0}, &w);

	CHECK(v != PASSED || w.in_kernel <= w.samples / 20, "%u of %u samples in the kernel", w.in_kernel, w.samples);
	return v;
}

static enum verdict registers_are_exact_in_system_calls(void)
{
	struct watch w = {0};
	enum verdict v = watch_setting(&(struct setting){SCENE_KERNEL, check_plain, 0}, &w);

	CHECK(v != PASSED || w.in_kernel >= w.samples / 2, "%u of %u samples in the kernel", w.in_kernel, w.samples);
	return v;
}

static enum verdict short_read_reaches_the_end_of_the_mapping(void)
{
	struct watch w = {0};

	return watch_setting(&(struct setting){SCENE_TOP, check_top, 0}, &w);
}

static enum verdict mapping_that_begins_in_the_red_zone_is_copied_from_its_start(void)
{
	struct watch w = {0};

	return watch_setting(&(struct setting){SCENE_BOTTOM, check_bottom, 0}, &w);
}

static enum verdict thirty_two_bit_code_is_marked(void)
{
	struct watch w = {0};

	if (PROBE_ARCH != OTP_ARCH_X86_64)
		return SKIPPED;
	return watch_setting(&(struct setting){SCENE_COMPAT, check_compat, 0}, &w);
}

static enum verdict deep_stack_comes_in_chunks(void)
{
	struct watch w = {0};
	enum verdict v = watch_setting(&(struct setting){SCENE_USER, check_deep, 256u << 10}, &w);

	/* The last drain may end within a stack. */
	CHECK(v != PASSED || w.chunks >= (w.samples - 1) * 7, "%u chunks of %u samples", w.chunks, w.samples);
	CHECK(v != PASSED || w.whole >= w.samples - 1, "%u of %u stacks whole", w.whole, w.samples);
	return v;
}

static enum verdict deepest_stack_ends_with_its_mapping(void)
{
	struct watch w = {0};
	enum verdict v;

	/* 400,128 bytes are there, fewer than the plan wants. */
	v = watch_setting(&(struct setting){SCENE_USER, check_deep, OTP_STACK_LIMIT}, &w);
	CHECK(v != PASSED || w.chunks >= (w.samples - 1) * 12, "%u chunks of %u samples", w.chunks, w.samples);
	return v;
}

/*
 * Kernel frames. Of the child alone: other processes run programs of other
 * samplers at forks and execs, and those are rightly in their stacks.
 */
struct kernel_watch {
	pid_t pid;
	unsigned int stacks, ours;
	char ours_name[64];
};

static bool name_is_ours(const char *name)
{
	static const char *const ours[] = {"bpf_prog_", "bpf_overflow", "bpf_get_stack", "perf_event_overflow",
					   "perf_swevent_hrtimer", "hrtimer_interrupt", "otprof_", "on_tick"};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strstr(name, ours[i]))
			return true;
	return false;
}

static void see_kernel_frames(void *ctx, const struct otp_rec *rec)
{
	struct kernel_watch *k = ctx;
	struct view v;

	if (rec->type != OTP_REC_SAMPLE || k->stacks >= 200)
		return;
	take_apart((const void *)rec, &v);
	if (v.s->pid != (uint32_t)k->pid)
		return;
	k->stacks += v.nr_kstack > 0;
	for (uint32_t i = 0; i < v.nr_kstack && i < 4; i++) {
		const char *name = kernel_name(v.kstack[i]);

		if (name_is_ours(name)) {
			k->ours++;
			snprintf(k->ours_name, sizeof(k->ours_name), "%s", name);
		}
	}
}

static enum verdict kernel_stack_holds_no_frame_of_the_sampler(void)
{
	struct source_config cfg = config_default();
	struct stage *stage = stage_new();
	struct kernel_watch k = {0};
	struct session s;
	int err;

	err = session_open(&s, &cfg);
	/* With the sampler's own programs. */
	if (err == 0 && !kernel_names_load()) {
		session_close(&s);
		return SKIPPED;
	}
	k.pid = child_start(SCENE_KERNEL, stage, 0);
	if (err == 0)
		err = session_run(&s, RUN_MS, see_kernel_frames, &k);
	child_end(k.pid);
	session_close(&s);
	CHECK(err == 0, "error %d", err);
	CHECK(k.stacks >= 20, "%u kernel stacks", k.stacks);
	CHECK(!k.ours, "%u frames such as %s", k.ours, k.ours_name);
	return PASSED;
}

const struct probe_test capture_tests[] = {
	{"user registers and stack are exact", user_registers_and_stack_are_exact},
	{"registers are exact in system calls", registers_are_exact_in_system_calls},
	{"short read reaches the end of the mapping", short_read_reaches_the_end_of_the_mapping},
	{"mapping that begins in the red zone is copied from its start",
	 mapping_that_begins_in_the_red_zone_is_copied_from_its_start},
	{"32-bit code is marked", thirty_two_bit_code_is_marked},
	{"deep stack comes in chunks", deep_stack_comes_in_chunks},
	{"deepest stack ends with its mapping", deepest_stack_ends_with_its_mapping},
	{"kernel stack holds no frame of the sampler", kernel_stack_holds_no_frame_of_the_sampler},
	{NULL, NULL},
};
