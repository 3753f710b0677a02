// SPDX-License-Identifier: Apache-2.0
/*
 * A perf sample from anywhere as the contract's record: a byte of format, a
 * byte of what is asked for, then the record; what comes out is read back.
 */
#include <stdlib.h>
#include <string.h>

#include "ring/ring.h"
#include "source/perf_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum;

static void read_back(const struct otp_sample *head)
{
	for (int type = 0; type < 9; type++) {
		uint32_t len = 0;
		const uint8_t *p = sample_section(head, (enum otp_section_type)type, &len);

		for (uint32_t i = 0; p && i < len; i++)
			sum += p[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_subject who = {.comm = "fuzz"};
	struct perf_format format;
	struct perf_sample s;
	size_t len;
	void *record, *out;

	if (size < 2)
		return 0;
	format = (struct perf_format){.callchain = data[0] & 1, .cgroup = data[0] & 2};
	who.stack_bytes = (uint32_t)data[1] << 10;
	who.stack_take = data[0] & 8 ? who.stack_bytes / 2 : who.stack_bytes;
	len = size - 2;
	/* Of its own, so that reading beyond it is seen; its size says what there is, mostly. */
	record = malloc(len + 1);
	memcpy(record, data + 2, len);
	if (len >= 8 && len < 65536 && data[0] & 16)
		memcpy((uint8_t *)record + 6, &(uint16_t){(uint16_t)len}, 2);
	if (perf_sample_decode(record, len, &format, &s) == 0) {
		out = malloc(perf_sample_bound(&s));
		if (perf_sample_write(out, &s, &who, 1) > perf_sample_bound(&s))
			abort();
		read_back(out);
		free(out);
	}
	free(record);
	return 0;
}
