/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the userspace tests of the module's pure files share: a list of facts, a
 * line for each, and random numbers that are the same in each run.
 */
#ifndef OTP_TESTS_KMOD_TEST_H
#define OTP_TESTS_KMOD_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CHECK(cond)                                                             \
	do {                                                                    \
		if (!(cond)) {                                                  \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);     \
			return false;                                           \
		}                                                               \
	} while (0)

struct test {
	const char *name;
	bool (*run)(void);
};

/* Returns how many failed. what: the part of the module, before each name. */
static inline int test_run(const char *what, const struct test *tests, size_t nr)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < nr; i++) {
		bool ok = tests[i].run();

		failed += !ok;
		printf("%s - module's %s: %s\n", ok ? "ok" : "not ok", what, tests[i].name);
	}
	return failed;
}

/* Xorshift; *x is not 0. */
static inline uint64_t test_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

#endif
