// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/walk.h"

#include <linux/string.h>

#include "kmod/regs.h"

static void walk_plan(struct otprof_walking *w, const struct otp_walks_ready *walks, u32 index, u64 tls_base)
{
	struct otp_section head = { .type = OTP_SEC_WALK };
	u8 *to = (u8 *)w->sections + w->bytes;

	w->walker.ready = walks->plan[index];
	head.len = otp_walk_run(&w->walker, tls_base, walks->generation, index);
	if (w->bytes + sizeof(head) + head.len > sizeof(w->sections))
		return;
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), w->walker.out, head.len);
	w->bytes += sizeof(head) + head.len;
	w->nr++;
}

/* A walk of slots begins at a register. */
static void walk_set_registers(struct otp_walker *w, const struct pt_regs *regs, u64 valid)
{
	u64 all[OTPROF_REGS];

	BUILD_BUG_ON(OTPROF_REG_PC > OTP_WALK_REGS);
	otprof_regs_copy_valid(all, regs, valid);
	memcpy(w->regs, all, OTPROF_REG_PC * sizeof(u64));
	w->pc = all[OTPROF_REG_PC];
}

void otprof_walk(struct otprof_walking *w, const struct otp_walks_ready *walks, u64 tls_base, u64 sp,
		 const struct pt_regs *regs, u64 valid)
{
	u32 i;

	w->bytes = w->nr = 0;
	w->walker.taken = 0;
	w->walker.sp = sp;
	walk_set_registers(&w->walker, regs, valid);
	for (i = 0; i < OTP_WALK_PLANS; i++)
		if (walks->plan[i].plan.start != OTP_WALK_NONE)
			walk_plan(w, walks, i, tls_base);
}
