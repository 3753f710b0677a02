// SPDX-License-Identifier: Apache-2.0
/* An .otlp file from anywhere, read and written in every format. */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/limits.h"
#include "render/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was accepted must survive its own OTLP form with the same samples. */
static void again(const struct buf *otlp, uint64_t total)
{
	_cleanup_(recording_freep) struct recording *r = NULL;

	if (recording_new(&cli_recording_limits, &r) < 0 || recording_read(r, otlp->data, otlp->len) < 0 || r->total != total)
		abort();
}

static void render_all(struct recording *r)
{
	static render_fn *const renderers[] = {render_svg, render_collapsed, render_pprof, render_otlp};
	struct render_options o = {.title = "fuzz"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(renderers); i++) {
		_cleanup_(buf_done) struct buf b = {.max = 64u << 20};

		if (renderers[i](r, &o, &b) == 0 && renderers[i] == render_otlp)
			again(&b, r->total);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(recording_freep) struct recording *r = NULL;

	if (recording_new(&cli_recording_limits, &r) == 0 && recording_read(r, data, size) == 0)
		render_all(r);
	return 0;
}
