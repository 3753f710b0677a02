// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a module's code is still that which a sample met. A module is purged by
 * one process, erts_code_purger (erts/preloaded/src/erts_code_purger.erl), in two
 * steps: first all processes are asked whether they run its code, and the answers
 * are waited for, then its memory is freed. Reductions are added to a process'
 * count (Process.reds) when it leaves its scheduler, as to wait. So the count has
 * risen since the last sample in the module, unless that was taken during the wait; and
 * it rises again before what is loaded in the memory's place is in force, as that
 * takes all schedulers to have passed through their queues (beam_bif_load.c,
 * code_ix.c). A reading of what is in force there, by which the count is still a
 * sample's, is of the code that the sample met.
 * Where no symbol leads to the process, its name does.
 * Each purge raises it several times. So what was read under two values may be
 * of two loadings of one module at one place: RUNTIME_CODE_RECURS.
 */
#include <errno.h>

#include "runtime/beam.h"

static uint64_t beam_epoch_of(uint64_t reds)
{
	return (uint32_t)reds + 1ULL;
}

int beam_epoch_now(const struct beam *b, struct memory *m, uint64_t *ret)
{
	uint64_t reds;

	*ret = 0;
	if (!b->epoch_at)
		return 0;
	if (memory_u64(m, b->epoch_at, &reds))
		return -EFAULT;
	*ret = beam_epoch_of(reds);
	return 0;
}

static int beam_purger(const struct runtime_file *file, struct memory *m, const struct beam *b, uint64_t *ret)
{
	uint64_t at;

	if (runtime_address(file, "erts_code_purger", &at))
		return b->purger ? beam_registered(file, m, b, b->purger, ret) : -ENOENT;
	return memory_u64(m, at, ret) || !*ret ? -ENOENT : 0;
}

void beam_epoch_attach(const struct runtime_file *file, struct memory *m, struct beam *b, struct otp_walk *walk)
{
	uint64_t purger;

	if (walk->start == OTP_WALK_NONE || !beam_rows[b->row].reds || beam_purger(file, m, b, &purger))
		return;
	b->epoch_at = purger + (uint64_t)beam_rows[b->row].reds;
	if (beam_epoch_now(b, m, &b->epoch))
		b->epoch_at = 0;
	walk->held.also = b->epoch_at;
}

/* The word lies behind those of the root: the saved stack pointer, and with an interpreter the heap's start. */
uint64_t beam_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	const struct beam *b = beam_of(a);
	const uint32_t at = 1 + (b->loop != 0);

	if (!b->epoch_at || (nr_root && (nr_root <= at || root[at] == OTP_WALK_UNREAD)))
		return 0;
	return nr_root ? beam_epoch_of(root[at]) : b->epoch;
}
