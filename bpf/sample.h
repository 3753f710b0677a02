/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fills one sample into this CPU's scratch area: the head, then sections.
 *
 * Every section writer has one form: it takes the offset at which it may
 * begin, appends its section and returns where the next one begins. All
 * payloads are multiples of 8, so no padding is left uninitialised. The user
 * stack comes last, as the only one without a small bound. The interpreter
 * walks and the trace context come before it, after the frame pointer walk,
 * with their loops as global functions like those of the stack.
 */
#ifndef OTP_BPF_SAMPLE_H
#define OTP_BPF_SAMPLE_H

#define BUDGET_WINDOW_NS 100000000ULL
#define FPWALK_STACK     512
#define KSTACK_BYTES     (OTP_KSTACK_MAX * sizeof(u64))

#define HAS_NO_USER (OTP_MODE_KTHREAD | OTP_MODE_NO_USER | OTP_MODE_EXITING)

static __always_inline void section_begin(u8 *s, u64 at, u16 type, u32 len)
{
	struct otp_section *section = (void *)(s + at);

	section->type = type;
	section->flags = 0;
	section->len = len;
	((struct otp_sample *)s)->nr_sections++;
}

static __always_inline u32 task_mode(struct bpf_perf_event_data *ctx, struct task_struct *task)
{
	u32 mode = regs_user(&ctx->regs) ? 0 : OTP_MODE_KERNEL, flags = kread(task, flags);

	if (flags & PF_KTHREAD)
		return mode | OTP_MODE_KTHREAD;
	if (is_worker(flags))
		return mode | OTP_MODE_NO_USER;
	if (!kread(task, mm))
		return mode | OTP_MODE_EXITING;
	return mode;
}

/*
 * Where stacks are known to end: the first thread's where the kernel put its
 * arguments, the others' below their thread's own data, which C libraries
 * place at the top of the mapping.
 */
static __always_inline u64 stack_end(const struct subject *who, u64 tls)
{
	return who->tid == who->pid ? kread(kread(who->task, mm), start_stack) : tls;
}

static __always_inline void put_head(u8 *scratch, const struct subject *who, const struct choice *choice,
				     const struct cpu_state *cpu, u32 mode)
{
	struct otp_sample *s = (void *)scratch;

	s->rec.type = OTP_REC_SAMPLE;
	s->rec.flags = 0;
	s->time_ns = cpu->time_ns;
	s->seq = cpu->seq;
	s->cpu = bpf_get_smp_processor_id();
	s->pid = who->pid;
	s->tid = who->tid;
	s->plan_gen = choice->plan_gen;
	s->start_ns = start_of(who->task);
	s->exec_id = exec_of(who->task);
	s->cgroup_id = bpf_get_current_cgroup_id();
	s->tls_base = mode & HAS_NO_USER ? 0 : tls_base(who->task);
	*(struct comm *)s->comm = who->comm;
	s->mode = mode | choice->mode;
	s->stack_bytes = choice->stack_bytes;
	s->ppid = who->ppid;
	s->arch = OTP_ARCH_HERE;
	s->nr_sections = 0;
	s->stack_end = mode & HAS_NO_USER ? 0 : stack_end(who, s->tls_base);
}

/* Registers as the tick found them, or as they were saved on entry to the kernel. */
static __always_inline u64 put_regs(struct bpf_perf_event_data *ctx, u8 *s, u64 at, const struct subject *who,
				    u32 mode)
{
	struct otp_sample *head = (void *)s;
	struct otp_regs *to = (void *)(s + at + sizeof(struct otp_section));
	bool compat;

	if (mode & OTP_MODE_KERNEL) {
		/* In a part of the scratch area that is free: half of the program's stack would be theirs. */
		bpf_user_pt_regs_t *saved = (void *)(s + STACK_AT_MAX);

		/* On failure all are zero, which the check below takes for none. */
		bpf_probe_read_kernel(saved, sizeof(*saved), saved_user_regs(who->task));
		regs_copy(to->reg, saved);
		compat = regs_compat(saved);
		/* Keeps the two copies apart: a pointer that is either is no context to the verifier. */
		asm volatile("" ::: "memory");
	} else {
		regs_copy(to->reg, &ctx->regs);
		compat = regs_compat(&ctx->regs);
	}
	if (!to->reg[OTP_REG_PC_HERE] && !to->reg[OTP_REG_SP_HERE]) {
		head->mode |= OTP_MODE_NO_USER;
		return at;
	}
	to->valid = REGS_VALID;
	if (compat) {
		head->mode |= OTP_MODE_COMPAT;
		to->valid = REGS_VALID_32;
		regs_forget_64(to->reg);
	}
	section_begin(s, at, OTP_SEC_REGS, sizeof(*to) + OTP_REGS_HERE * sizeof(u64));
	return at + sizeof(struct otp_section) + sizeof(*to) + OTP_REGS_HERE * sizeof(u64);
}

/* The event's own registers are where the kernel's unwinder begins: no frame of ours is on it. */
static __always_inline u64 put_kstack(struct bpf_perf_event_data *ctx, u8 *s, u64 at)
{
	long n = bpf_get_stack(ctx, s + at + sizeof(struct otp_section), KSTACK_BYTES, 0);
	u64 len = n < 0 ? 0 : n;

	opaque(len);
	len &= 0x3f8; /* KSTACK_BYTES, in whole addresses */
	section_begin(s, at, OTP_SEC_KSTACK, len);
	return at + sizeof(struct otp_section) + len;
}
_Static_assert(KSTACK_BYTES == 0x3f8, "the mask in put_kstack is the bound");

static __always_inline u64 put_fpwalk(u8 *s, u64 at, u64 fp)
{
	u64 len = walk_frame_pointers(at + sizeof(struct otp_section), fp);

	opaque(len);
	if (len > WALK_PAIRS * 16)
		len = 0;
	section_begin(s, at, OTP_SEC_FPWALK, len);
	return at + sizeof(struct otp_section) + len;
}

/* What the time since then adds to it; never more than 100 ms are worth. */
static __always_inline u64 budget_fill(const struct cpu_state *cpu, u32 budget)
{
	u64 ns = cpu->time_ns - cpu->budget_ns, left = budget;

	if (ns < BUDGET_WINDOW_NS)
		left = cpu->budget_left + ns * budget / BUDGET_WINDOW_NS;
	return left < budget ? left : budget;
}

static __always_inline void budget_spend(struct cpu_state *cpu, u64 bytes)
{
	cpu->budget_left -= bytes < cpu->budget_left ? bytes : cpu->budget_left;
}

/*
 * What the bound on bytes per second leaves of the wishes. A copy takes half of
 * what there is above the default, so that a deep one never leaves nothing for
 * the small ones after it, and where all are deep each gets about as much. The
 * base comes first, and whole: without it the stack is cut whatever is copied,
 * so where it does not fit all is left to the next one.
 */
static __always_inline void within_budget(struct otp_sample *head, struct cpu_state *cpu, u64 *want, u64 *base,
					  u32 budget)
{
	u64 room = 0;

	if (*want <= OTP_STACK_DEFAULT && !*base)
		return;
	cpu->budget_left = budget_fill(cpu, budget);
	cpu->budget_ns = cpu->time_ns;
	if (*base <= cpu->budget_left) {
		room = (cpu->budget_left - *base) / 2 & ~7ULL;
	} else {
		*base = 0;
		head->mode |= OTP_MODE_THROTTLE;
	}
	if (*want > OTP_STACK_DEFAULT + room) {
		*want = OTP_STACK_DEFAULT + room;
		head->mode |= OTP_MODE_THROTTLE;
	}
}

static __always_inline u64 stack_wish(const struct choice *choice)
{
	u64 want = choice->capture == OTP_CAPTURE_FPWALK ? FPWALK_STACK : choice->stack_bytes;

	if (want > OTP_STACK_LIMIT)
		want = OTP_STACK_LIMIT;
	return (want + 7) & ~7ULL;
}

/* What is missing below a known end is a hole, not the end. */
static __always_inline bool is_stack(u64 end, u64 addr)
{
	return end && addr <= end + 8;
}

/* Nothing above end is stack. True: the copy now ends there, with all there is. */
static __always_inline bool clip_stack(u64 *want, u64 addr, u64 end)
{
	if (end <= addr || end - addr >= *want)
		return false;
	*want = (end - addr + 7) & ~7ULL;
	return true;
}

/* The outermost frames, where the copy does not reach them. */
static __always_inline u64 base_wish(const struct otp_sample *head, u32 bytes, u64 addr, u64 want)
{
	u64 end = head->stack_end & ~7ULL, base = bytes & ~7U;

	if (!end)
		return 0;
	if (base > OTP_BASE_LIMIT)
		base = OTP_BASE_LIMIT;
	/* Not what is copied already. */
	if (addr < end && addr + want > end - base)
		base = addr + want < end ? end - (addr + want) : 0;
	return base;
}

static __always_inline u64 put_ustack(u8 *s, u64 at, const struct choice *choice, struct cpu_state *cpu, u64 sp,
				      u32 budget)
{
	struct otp_sample *head = (void *)s;
	u64 addr = (sp - OTP_RED_ZONE) & ~7ULL, bytes = at + sizeof(struct otp_section) + sizeof(struct otp_ustack);
	u64 want = stack_wish(choice), base, first, got, word;

	if (clip_stack(&want, addr, head->stack_end))
		head->mode |= OTP_MODE_SHORT;
	base = base_wish(head, choice->base_bytes, addr, want);
	within_budget(head, cpu, &want, &base, budget);
	if (base)
		head->mode |= OTP_MODE_CHUNKED;
	cpu->base_left = base;
	cpu->base_next = (head->stack_end & ~7ULL) - base;
	first = want > OTP_HEAD_STACK ? OTP_HEAD_STACK : want;
	/* The mapping may begin between the red zone's end and the stack pointer. */
	if (((addr ^ sp) & ~(PAGE - 1)) && bpf_probe_read_user(&word, sizeof(word), (const void *)addr))
		addr = sp & ~(PAGE - 1);
	got = copy_user(bytes, first, addr);
	((struct otp_ustack *)(s + bytes))[-1].addr = addr;
	if (got & COPY_HOLES)
		head->mode |= OTP_MODE_HOLES;
	got &= ~COPY_HOLES;
	cpu->stack_known = is_stack(head->stack_end, addr + want);
	if (got && got < first && want > first && cpu->stack_known) {
		got = first;
		head->mode |= OTP_MODE_HOLES;
	}
	opaque(got);
	if (got > OTP_HEAD_STACK)
		got = 0;
	cpu->short_tid[head->tid % SHORT_TIDS] = got < first ? head->tid : 0;
	if (got < first) {
		head->mode |= OTP_MODE_SHORT;
	} else if (want > first) {
		head->mode |= OTP_MODE_CHUNKED;
		cpu->stack_left = want - first;
		cpu->stack_next = addr + first;
	}
	if (got > OTP_STACK_DEFAULT)
		budget_spend(cpu, got - OTP_STACK_DEFAULT);
	section_begin(s, at, OTP_SEC_USTACK, sizeof(struct otp_ustack) + got);
	return bytes + got;
}

/* Returns the length of the record. */
static __always_inline u64 sample_fill(struct bpf_perf_event_data *ctx, u8 *s, const struct subject *who,
				       const struct choice *choice, struct cpu_state *cpu, u32 mode, u32 budget)
{
	struct otp_sample *head = (void *)s;
	const struct otp_regs *regs = (void *)(s + sizeof(*head) + sizeof(struct otp_section));
	u64 at = sizeof(*head);

	cpu->stack_left = cpu->base_left = 0;
	put_head(s, who, choice, cpu, mode);
	if (!(mode & HAS_NO_USER))
		at = put_regs(ctx, s, at, who, mode);
	if (mode & OTP_MODE_KERNEL)
		at = put_kstack(ctx, s, at);
	if (!(head->mode & HAS_NO_USER)) {
		if (choice->capture == OTP_CAPTURE_FPWALK)
			at = put_fpwalk(s, at, regs->reg[OTP_REG_FP_HERE]);
		at = put_ustack(s, at, choice, cpu, regs->reg[OTP_REG_SP_HERE], budget);
	}
	head->rec.len = at;
	return at;
}

#endif
