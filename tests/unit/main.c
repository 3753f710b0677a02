/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every unit suite, or those named as arguments, and ends with Check's
 * own totals. The list of suites is generated from the file names.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"

#define X(name) Suite *name##_suite(void);
#include "suites.inc"
#undef X

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define X(name) { #name, name##_suite },
#include "suites.inc"
#undef X
};

#define NR_SUITES (sizeof(suites) / sizeof(suites[0]))

static int wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc <= 1;
}

int main(int argc, char **argv)
{
	SRunner *runner = srunner_create(NULL);
	int failed, ran;
	size_t i;

	config_check_transports(); /* as otprofd does */
	for (i = 0; i < NR_SUITES; i++)
		if (wanted(suites[i].name, argc, argv))
			srunner_add_suite(runner, suites[i].make());
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	ran = srunner_ntests_run(runner);
	srunner_free(runner);
	/* Nothing run is a wrong argument or a lost list, not a success. */
	return failed || !ran ? EXIT_FAILURE : EXIT_SUCCESS;
}
