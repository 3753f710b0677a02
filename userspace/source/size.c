// SPDX-License-Identifier: Apache-2.0
#include "source/size.h"

#include "base/cleanup.h"
#include "kmod/uapi/otprof.h"

#define RECORD_TYPICAL (OTP_STACK_FLOOR + 512) /* at the default stack */
#define SIDEBAND_MOST  (256u << 10)
#define SIDEBAND_LEAST (64u << 10)
#define PAGE	       4096u

/* Memory that does not grow with the host: code, caches at their bounds, plans, hints and rules. */
#define PROCESSES_BYTES (28u << 20)
#define PLANS_BYTES	(4u << 20)
/* For each sample in a second: one drain's records, the interval's distinct stacks and the memory to encode them. */
#define SAMPLE_BYTES 1024u

uint32_t size_ring(uint32_t cpus, uint32_t frequency_hz)
{
	uint64_t enough = (uint64_t)cpus * frequency_hz * RECORD_TYPICAL * 5 / 2;
	uint32_t size = SIZE_RING_MIN;

	while (size < enough && size < SIZE_RING_MAX)
		size *= 2;
	return size;
}

uint32_t size_ring_within(uint32_t cpus, uint32_t frequency_hz, uint64_t memory_bytes)
{
	uint32_t size = size_ring(cpus, frequency_hz);

	while (memory_bytes && size > SIZE_RING_MIN / 4 && size > memory_bytes / 8)
		size /= 2;
	return size;
}

/* Many CPUs share one machine's forks and execs: their buffers stay within 16 MiB together, to 256 CPUs. */
uint32_t size_sideband(uint32_t cpus)
{
	if (cpus <= 32)
		return SIDEBAND_MOST;
	return cpus <= 64 ? SIDEBAND_MOST / 2 : SIDEBAND_LEAST;
}

uint64_t size_memory(uint32_t cpus, uint32_t frequency_hz)
{
	uint64_t per_cpu = OTP_SCRATCH + sizeof(struct otp_cpu_counters) + size_sideband(cpus) + PAGE;

	return PROCESSES_BYTES + PLANS_BYTES + size_ring(cpus, frequency_hz) + cpus * per_cpu +
	       MIN((uint64_t)cpus * frequency_hz, 32768) * SAMPLE_BYTES;
}
