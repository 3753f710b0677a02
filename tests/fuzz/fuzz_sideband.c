// SPDX-License-Identifier: Apache-2.0
/* A side-band buffer from anywhere: 8 bytes of head, 8 of tail, then data. */
#include <string.h>

#include "source/sideband_buffer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUFFER 4096

static uint64_t sum;

static void touch(void *ctx, const void *record, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)record)[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t area[BUFFER], scratch[SIDEBAND_RECORD_MAX];
	static struct perf_event_mmap_page page;
	struct sideband_buffer b = {.page = &page, .data = area, .data_bytes = BUFFER};

	if (size < 16)
		return 0;
	memcpy((void *)&page.data_head, data, 8);
	memcpy((void *)&page.data_tail, data + 8, 8);
	memset(area, 0, sizeof(area));
	memcpy(area, data + 16, size - 16 < BUFFER ? size - 16 : BUFFER);
	sideband_buffer_drain(&b, scratch, touch, NULL);
	return 0;
}
