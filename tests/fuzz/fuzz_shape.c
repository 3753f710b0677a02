// SPDX-License-Identifier: Apache-2.0
/* Any bytes as requests of an engine that was taken over: what a shape takes of them it writes with the same sum. */
#include "export/shape.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "recording/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct recording_limits limits = {
	.request = {.request_bytes = 64 << 20, .memory_bytes = 1 << 30, .depth = 8192},
	.entries = 1 << 20,
	.bytes = 1 << 28,
	.total = INT64_MAX,
	.frames = UINT32_MAX,
};

static uint64_t total_of(const struct export_request *r)
{
	struct recording *rec;
	uint64_t total;

	if (recording_new(&limits, &rec) < 0)
		exit(0);
	if (recording_read(rec, r->form[EXPORT_CODING_NONE].data, r->form[EXPORT_CODING_NONE].len) < 0)
		abort();
	total = rec->total;
	recording_free(rec);
	return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct export_config cfg = {.preset = (enum export_preset)(len % 3), .interval_ns = 3, .engine_interval_ns = 1};
	struct export_request in = {.id = 1, .samples.of[0] = 1};
	struct export_request *out;
	struct shape s;
	uint64_t total;

	in.form[EXPORT_CODING_NONE] = (struct export_form){.data = (void *)(uintptr_t)data, .len = len};
	shape_init(&s, &cfg);
	if (shape_add(&s, &in, 0) < 0 || !shape_has_room(&s, &in) || shape_add(&s, &in, 0) < 0) {
		shape_done(&s);
		return 0;
	}
	total = s.merged->total;
	if (s.samples.of[0] != 2)
		abort();
	if (shape_finish(&s, &out) == 0) {
		if (total_of(out) != total)
			abort();
		export_request_put(out);
	}
	return 0;
}
