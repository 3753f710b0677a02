/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies interpreters' frames, by the walks of the process: a section for each
 * plan, written between the kernel's stack and the user's.
 *
 * The walker's C is shared with the module; here it runs in global functions,
 * each of which the verifier checks once: inlined, the loop over frames exceeds
 * what it follows. Their arguments are numbers, so each looks up this CPU's
 * walker, which is too large for a stack.
 */
#ifndef OTP_BPF_WALK_H
#define OTP_BPF_WALK_H

#define WALK_WORDS (sizeof(struct otp_walk_ready) / sizeof(u64))

/*
 * The kernel reuses the element of walks that were replaced or removed at once,
 * for another process perhaps (plan_find). Each plan ends in a mark of its
 * process and generation. A writer writes upward and the copy is made upward, so
 * a copy that ends in the mark, from an element that has the pid before and
 * after, is of one plan.
 */
static __always_inline bool walk_is_of(const volatile struct otp_walks_ready *from, u32 pid, u32 generation)
{
	return from->pid == pid && from->generation == generation;
}

static __always_inline bool walk_copy(struct otp_walker *w, const volatile struct otp_walks_ready *from, u64 index, u32 pid,
				      u32 generation)
{
	u64 *to = (u64 *)&w->ready;
	const volatile u64 *word;

	opaque(index);
	if (index >= OTP_WALK_PLANS || from->plan[index].plan.start == OTP_WALK_NONE)
		return false;
	word = (const volatile u64 *)&from->plan[index];
	for (u32 i = 0; i < WALK_WORDS; i++)
		to[i] = word[i];
	return w->ready.mark[0] == pid && w->ready.mark[1] == generation && walk_is_of(from, pid, generation);
}

/* One step of this CPU's walker. 0, or 1: the walk is over. */
__noinline u64 walk_frame(u32 nr)
{
	struct otp_walker *w = bpf_map_lookup_elem(&walkers, &nr);

	return w ? otp_walk_frame(w, w->ready.words) : 1;
}

__noinline u64 walk_begin(u32 nr, u64 tls)
{
	struct otp_walker *w = bpf_map_lookup_elem(&walkers, &nr);

	return w ? otp_walk_begin(w, tls) : 1;
}

/*
 * Walks by the plan that was copied, to that offset of the scratch area. Returns the offset behind the section. All
 * sections of a sample together are bounded by the walker (taken), so the second is never in want of room.
 */
__noinline u64 walk_plan(u32 nr, u64 at, u64 tls, u64 generation, u64 index)
{
	struct otp_walker *w = bpf_map_lookup_elem(&walkers, &nr);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &nr);
	u64 len, over;

	opaque(at);
	if (!w || !s || at > STACK_AT_MAX - sizeof(struct otp_section))
		return at;
	over = walk_begin(nr, tls);
	for (u32 i = 0; i < OTP_WALK_STEPS && !over; i++)
		over = walk_frame(nr);
	len = otp_walk_finish(w, generation, index);
	opaque(len);
	if (len > OTP_WALK_BYTES)
		return at;
	section_begin(s->byte, at, OTP_SEC_WALK, len);
	bpf_probe_read_kernel(s->byte + at + sizeof(struct otp_section), len, w->out);
	return at + sizeof(struct otp_section) + len;
}

/* All walks of that process, if they are of this exec of it. Returns the offset behind their sections. */
__noinline u64 walk_all(u64 at, u32 pid, u64 start_ns, u64 exec_id, u64 tls)
{
	const volatile struct otp_walks_ready *from = bpf_map_lookup_elem(&walks, &pid);
	u32 nr = bpf_get_smp_processor_id(), generation;
	struct otp_walker *w = bpf_map_lookup_elem(&walkers, &nr);

	if (!from || !w)
		return at;
	generation = from->generation;
	if (from->start_ns != start_ns || from->exec_id != exec_id || !walk_is_of(from, pid, generation))
		return at;
	w->taken = 0;
	for (u32 i = 0; i < OTP_WALK_PLANS; i++)
		if (walk_copy(w, from, i, pid, generation))
			at = walk_plan(nr, at, tls, generation, i);
	return at;
}

/* A walk of slots begins at a register. */
static __always_inline void walk_set_registers(struct otp_walker *w, const struct otp_regs *regs)
{
	_Pragma("unroll") for (u32 i = 0; i < OTP_REG_PC_HERE && i < OTP_WALK_REGS; i++)
		w->regs[i] = regs->reg[i];
	w->sp = regs->reg[OTP_REG_SP_HERE];
	w->pc = regs->reg[OTP_REG_PC_HERE];
}

static __always_inline u64 put_walks(const struct otp_sample *head, const struct subject *who, const struct choice *choice,
				     u64 at, const struct otp_regs *regs)
{
	bool inherited = choice->walk == WALK_OF_PARENT;
	struct task_struct *of = inherited ? who->parent : who->task;
	u32 nr = bpf_get_smp_processor_id();
	struct otp_walker *w = bpf_map_lookup_elem(&walkers, &nr);
	u64 end;

	if (!w)
		return at;
	walk_set_registers(w, regs);
	end = walk_all(at, inherited ? who->ppid : who->pid, start_of(of), exec_of(of), head->tls_base);

	opaque(end);
	return end > STACK_AT_MAX - sizeof(struct otp_section) - sizeof(struct otp_ustack) ? at : end;
}

#endif
