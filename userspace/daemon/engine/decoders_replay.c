// SPDX-License-Identifier: Apache-2.0
/*
 * Decoding in a replay: in process, from what a decoder has read for the same
 * question while the capture was taken.
 */
#include <errno.h>

#include "daemon/engine/decoders_state.h"

void decoder_replay_attach(struct decoder *d, const struct decoders_replay *r)
{
	struct runtime_file file = {.binary = d->target.binary, .seen = &d->target.seen};
	char why[RUNTIME_WHY_MAX] = "";
	struct memory *m;
	int err = r->reads(r->ctx, &d->target, NULL, &m, &file);

	if (!err)
		err = decode_attach(&file, m, &d->as, why);
	decoder_close(d);
	if (err) {
		decoder_failed(d, err, why, d->began_ns);
		return;
	}
	d->replay = r;
	decoder_report(d, 0, &d->as, "");
}

static int decoder_replay_frame(struct decoder *d)
{
	const struct runtime_frame *f = &d->frames[d->first];
	struct memory *m;
	int err = d->replay->reads(d->replay->ctx, &d->target, f, &m, NULL);

	if (err)
		return err;
	return f->flags & RUNTIME_CODE ? decode_code(&d->as, m, f, &d->ds->code) :
					 decode_frame(&d->as, m, f, &d->ds->function);
}

/* Those that an answer asks for are answered here too, not within each other. */
void decoder_replay_frames(struct decoder *d)
{
	if (d->replaying)
		return;
	d->replaying = true;
	while (d->count)
		if (!decoder_answer(d, decoder_replay_frame(d)))
			return;
	d->replaying = false;
}
