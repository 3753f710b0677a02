/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kmod_stress: what shakes the module, one action at a time, on any kernel
 * that loads it. Static, so that it runs where nothing else is.
 *
 * An action prints facts ("ok - ..."); what the kernel itself has to say about
 * it is for whoever reads the kernel's messages.
 */
#ifndef OTP_TESTS_GUEST_KMOD_STRESS_H
#define OTP_TESTS_GUEST_KMOD_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kmod/uapi/otprof_dev.h"

struct rng {
	uint64_t x;
};
uint64_t rng_next(struct rng *r);
/* Of each process its own: seeds by the time and the pid, printed by main. */
struct rng rng_new(void);
uint64_t rng_seed(void);

/* True where so; a line either way. */
bool fact(bool so, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int dev_new(void); /* descriptor, or negative errno */
int call(int fd, unsigned long request, const void *arg); /* of an ioctl: >= 0 or negative errno */
struct otprof_config config_good(uint64_t hz, uint32_t ring_bytes);

/* Sound ones, but their addresses and offsets may be anything. */
struct otp_walks walks_any(struct rng *r, uint64_t base);

/* A sampler that runs, with everything mapped. */
struct owner {
	int dev, ring, counters; /* -1: not there */
	size_t ring_bytes;
	uint8_t *consumer, *producer, *data; /* data twice in a row */
	const uint8_t *count;
	uint64_t pos;
};
int owner_open(struct owner *o, const struct otprof_config *c); /* 0 or negative errno; to be closed either way */
void owner_close(struct owner *o);
uint64_t owner_seen(const struct owner *o); /* the producer's position */
void owner_release(struct owner *o, uint64_t pos);
const struct otp_rec *owner_next(struct owner *o, uint64_t end, uint32_t *ret_len); /* NULL: none before end */
struct otp_cpu_counters owner_counters(const struct owner *o, unsigned int cpu); /* of a stopped sampler: exact */
/* A new sampler works: samples come. */
bool owner_works(void);

pid_t spin_start(void); /* a child that uses a CPU until it is killed */
pid_t spin_short_start(void); /* likewise; its samples' stacks end before what was reserved for them */
void spin_end(pid_t pid);
void sleep_us(uint64_t us);
uint64_t now_ms(void);

/* Actions: true where all their facts are so. */
bool stress_loads(unsigned long times);	  /* load, owners killed, unload */
bool stress_owners(unsigned long times);  /* the same without reloading */
bool stress_overflow(unsigned long ms);
bool stress_pressure(unsigned long ms);
bool stress_faults(unsigned long every);	  /* one of so many allocations fails, each time the next such one; where
					     the kernel can do that */
bool stress_hotplug(unsigned long ms);
bool stress_plans(unsigned long ms);
bool stress_walks(unsigned long ms);
bool stress_rest(unsigned long ms);	  /* samplers that together ask for all of a CPU */
bool fuzz_calls(unsigned long ms);
bool fuzz_maps(unsigned long ms);

#endif
