/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's own test: runs on the real kernel, whichever it is, as root.
 * Children put known values into registers and stack; the records must say so.
 */
#ifndef OTP_TESTS_GUEST_PROBE_H
#define OTP_TESTS_GUEST_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring/ring.h"
#include "source/source.h"

/* Children. */
enum scene {
	SCENE_USER,    /* spins in user code */
	SCENE_KERNEL,  /* spins in read() of random bytes */
	SCENE_TOP,     /* the stack's mapping ends soon above the stack pointer */
	SCENE_BOTTOM,  /* it begins less than the red zone below it */
	SCENE_COMPAT,  /* 32-bit code */
	SCENE_EXEC,    /* executes a spinning program over and over */
	SCENE_FORK,    /* forks children that spin for a short time */
};

#define STACK_KEY   0x5ca1ab1e0ddba110ULL /* every word of the stack: its address ^ this */
#define REG_KEY     0x1122334455660000ULL /* register n of DWARF: this + n */
#define TOP_LEFT    3000 /* bytes above the stack pointer in SCENE_TOP, rounded to 8 */
#define STACK_BYTES (1u << 20)

struct stage { /* shared with the child */
	volatile uint64_t ready, sp, stack_start, stack_end, ip_start, ip_end;
};

pid_t child_start(enum scene scene, struct stage *stage, int cpu); /* cpu -1: any */
void child_end(pid_t pid);
/* Known words, between unreadable pages; returns its start. */
uint64_t child_make_stack(struct stage *stage, int flags);
uint64_t child_cpu_ns(pid_t pid);
int child_main(void); /* the program that SCENE_EXEC executes */
int child_again(void); /* executes itself over and over */

/* A source that runs, and its records. */
struct session {
	struct source *source;
	struct source_layout layout;
	struct ring ring;
	const uint8_t *counters;
	uint64_t pos;
};

typedef void record_fn(void *ctx, const struct otp_rec *rec);

/* The source under test: OTPROF_SOURCE in the environment, or "bpf". */
const struct source_ops *probe_ops(void);
struct source_config config_default(void);
int session_open(struct session *s, const struct source_config *cfg);
void session_close(struct session *s);
int session_drain(struct session *s, record_fn *fn, void *ctx);
int session_run(struct session *s, unsigned int ms, record_fn *fn, void *ctx);
struct otp_cpu_counters session_counters(const struct session *s, uint32_t cpu);
void sleep_ms(unsigned int ms);
int get_sysctl(const char *path, char ret[16]);
int set_sysctl(const char *path, const char *value);

/* The kernel's functions by name, for the whole run; false: addresses are hidden. */
bool kernel_names_load(void);
const char *kernel_name(uint64_t addr); /* of the function around addr; after a load */

/* Verdicts. A test returns after its first failed check. */
enum verdict { PASSED, FAILED, SKIPPED };
enum verdict verdict_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define CHECK(cond, ...)                                                  \
	do {                                                              \
		if (!(cond))                                              \
			return verdict_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

struct probe_test {
	const char *name;
	enum verdict (*run)(void);
};
extern const struct probe_test capture_tests[], select_tests[], exec_tests[], task_tests[], storage_tests[],
	idle_tests[], bound_tests[], view_tests[], life_tests[], event_tests[], host_tests[], walk_tests[],
	kmod_tests[], kmod_life_tests[];

#endif
