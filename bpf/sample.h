/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fills one sample into this CPU's scratch area: the head, then sections.
 *
 * Every section writer takes an offset, appends its section there and returns
 * the offset of the next one. All payloads are multiples of 8, so no padding is
 * left uninitialised. The user stack is last, as the only section without a
 * small bound.
 */
#ifndef OTP_BPF_SAMPLE_H
#define OTP_BPF_SAMPLE_H

#define KSTACK_BYTES     (OTP_KSTACK_MAX * sizeof(u64))

#define HAS_NO_USER (OTP_MODE_KTHREAD | OTP_MODE_NO_USER | OTP_MODE_EXITING)

static __always_inline u32 task_mode(struct bpf_perf_event_data *ctx, struct task_struct *task)
{
	u32 mode = regs_user(&ctx->regs) ? 0 : OTP_MODE_KERNEL, flags = kread(task, flags);

	if (flags & PF_KTHREAD)
		return mode | OTP_MODE_KTHREAD;
	if (is_worker(flags))
		return mode | OTP_MODE_NO_USER;
	if (!kread(task, mm))
		return mode | OTP_MODE_EXITING;
	if (mode && in_exec(task))
		return mode | OTP_MODE_NO_USER;
	return mode;
}

/*
 * The known end of a stack: for the first thread, where the kernel placed the
 * program's arguments; for others, the thread's own data, which C libraries
 * place at the top of the stack's mapping. 0: unknown, as for a process in its
 * parent's memory (vfork, posix_spawn): the arguments are the parent's, and so
 * may be the stack.
 */
static __always_inline u64 stack_end(const struct subject *who, u64 tls)
{
	struct mm_struct *mm;
	u64 first = 0;

	if (who->tid != who->pid) {
		bpf_probe_read_user(&first, sizeof(first), (const void *)tls);
		return otp_copy_thread_end(OTP_ARCH_HERE, tls, first);
	}
	mm = kread(who->task, mm);
	if (!mm || (who->ppid && kread(who->parent, mm) == mm))
		return 0;
	return kread(mm, start_stack);
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
	s->origin = cpu->origin;
	s->nr_sections = 0;
	s->stack_end = mode & HAS_NO_USER ? 0 : stack_end(who, s->tls_base);
	if (!who->pid)
		s->ppid = s->start_ns = s->exec_id = s->cgroup_id = 0;
}

/* Registers as the tick found them, or as they were saved on entry to the kernel. */
static __always_inline u64 put_regs(struct bpf_perf_event_data *ctx, u8 *s, u64 at, const struct subject *who,
				    u32 mode)
{
	struct otp_sample *head = (void *)s;
	struct otp_regs *to = (void *)(s + at + sizeof(struct otp_section));
	bool compat;

	if (mode & OTP_MODE_KERNEL) {
		/* In an unused part of the scratch area: they would fill half of the program's stack. */
		bpf_user_pt_regs_t *saved = (void *)(s + STACK_AT_MAX);

		/* On failure all are zero, which the check below treats as none. */
		bpf_probe_read_kernel(saved, sizeof(*saved), saved_user_regs(who->task));
		regs_copy(to->reg, saved);
		compat = regs_compat(saved);
		/* Keeps the compiler from merging the two copies: the verifier rejects a pointer to either. */
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

/* The kernel unwinds from the event's registers, so the sampler's own frames are not included. */
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

/* Cuts the copy and its base to the bound on bytes per second. */
static __always_inline void share_budget(struct otp_sample *head, struct cpu_state *cpu, u64 *want, u64 *base, u32 budget)
{
	struct budget *b = budget_of(cpu);

	if (!otp_budget_applies(*want, *base))
		return;
	b->left = otp_budget_fill(b->left, cpu->time_ns - b->time_ns, budget);
	b->time_ns = cpu->time_ns;
	if (otp_budget_share(b->left, want, base))
		head->mode |= OTP_MODE_THROTTLE;
}

/* Plans the copy and the chunks that continue it. Returns the bytes of the whole copy, without the base. */
static __always_inline u64 plan_copy(struct otp_sample *head, const struct choice *choice, struct cpu_state *cpu, u64 addr,
				     u32 budget)
{
	struct otp_copy copy;

	otp_copy_plan(&copy, addr, head->stack_end, choice->stack_bytes, choice->base_bytes, choice->tick_bytes);
	head->mode |= copy.mode;
	if (copy.mode & OTP_MODE_BOUNDED)
		head->stack_bytes = copy.want;
	share_budget(head, cpu, &copy.want, &copy.base, budget);
	if (copy.base)
		head->mode |= OTP_MODE_CHUNKED;
	cpu->base_left = copy.base;
	cpu->base_next = (head->stack_end & ~7ULL) - copy.base;
	cpu->stack_known = otp_copy_below_end(addr + copy.want, head->stack_end);
	return copy.want;
}

static __always_inline u64 put_ustack(u8 *s, u64 at, const struct choice *choice, struct cpu_state *cpu, u64 sp,
				      u32 budget)
{
	struct otp_sample *head = (void *)s;
	u64 addr = (sp - OTP_RED_ZONE) & ~7ULL, bytes = at + sizeof(struct otp_section) + sizeof(struct otp_ustack);
	u64 want = plan_copy(head, choice, cpu, addr, budget), first, got, word;
	struct budget *b = budget_of(cpu);

	first = want > OTP_HEAD_STACK ? OTP_HEAD_STACK : want;
	/* The mapping may begin between the red zone's end and the stack pointer. */
	if (((addr ^ sp) & ~(PAGE - 1)) && bpf_probe_read_user(&word, sizeof(word), (const void *)addr))
		addr = sp & ~(PAGE - 1);
	got = copy_user(bytes, first, addr);
	((struct otp_ustack *)(s + bytes))[-1].addr = addr;
	if (got & COPY_HOLES)
		head->mode |= OTP_MODE_HOLES;
	got &= ~COPY_HOLES;
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
	if (got > OTP_STACK_FLOOR)
		b->left = otp_budget_spend(b->left, got - OTP_STACK_FLOOR);
	section_begin(s, at, OTP_SEC_USTACK, sizeof(struct otp_ustack) + got);
	return bytes + got;
}

/* The number of events since the previous sample. */
static __always_inline u64 put_value(struct bpf_perf_event_data *ctx, u8 *s, u64 at)
{
	struct otp_value *to = (void *)(s + at + sizeof(struct otp_section));

	to->value = ctx->sample_period;
	section_begin(s, at, OTP_SEC_VALUE, sizeof(*to));
	return at + sizeof(struct otp_section) + sizeof(*to);
}

/* Returns the length of the record. */
static __always_inline u64 sample_fill(struct bpf_perf_event_data *ctx, u8 *s, const struct subject *who,
				       const struct choice *choice, struct cpu_state *cpu, u32 mode, u32 budget, u64 slot)
{
	struct otp_sample *head = (void *)s;
	const struct otp_regs *regs = (void *)(s + sizeof(*head) + sizeof(struct otp_section));
	u64 at = sizeof(*head);

	cpu->stack_left = cpu->base_left = 0;
	put_head(s, who, choice, cpu, mode);
	/* Registers come first, so that their offset is a constant. */
	if (!(mode & HAS_NO_USER))
		at = put_regs(ctx, s, at, who, mode);
	if (slot)
		at = put_value(ctx, s, at);
	if (mode & OTP_MODE_KERNEL)
		at = put_kstack(ctx, s, at);
	if (choice->walk && !(head->mode & (HAS_NO_USER | OTP_MODE_COMPAT)))
		at = put_walks(head, who, choice, at, regs);
	if (!(head->mode & HAS_NO_USER))
		at = put_ustack(s, at, choice, cpu, regs->reg[OTP_REG_SP_HERE], budget);
	head->rec.len = at;
	return at;
}

#endif
