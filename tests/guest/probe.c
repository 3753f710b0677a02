// SPDX-License-Identifier: Apache-2.0
/*
 * probe [NAME...]: every test, or those whose name holds one of the words.
 * Exit code 0 only where at least one passed and none failed.
 */
#include "probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static unsigned int count[3];

static bool wanted(const char *name, char **words)
{
	if (!*words)
		return true;
	for (; *words; words++)
		if (strstr(name, *words))
			return true;
	return false;
}

static void run_tests(const struct probe_test *t, char **words)
{
	static const char *const text[] = {[PASSED] = "ok", [FAILED] = "not ok", [SKIPPED] = "skip"};

	for (; t->name; t++) {
		enum verdict v;

		if (!wanted(t->name, words))
			continue;
		v = t->run();
		count[v]++;
		printf("%s - %s%s\n", text[v], t->name, v == SKIPPED ? ": not here" : "");
	}
}

int main(int argc, char **argv)
{
	struct utsname uts;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && strcmp(argv[1], "--child") == 0)
		return child_main();
	if (argc == 2 && strcmp(argv[1], "--again") == 0)
		return child_again();
	uname(&uts);
	printf("sampler on %s, %s\n", uts.release, uts.version);
	run_tests(capture_tests, argv + 1);
	run_tests(select_tests, argv + 1);
	run_tests(exec_tests, argv + 1);
	run_tests(task_tests, argv + 1);
	run_tests(storage_tests, argv + 1);
	run_tests(idle_tests, argv + 1);
	run_tests(bound_tests, argv + 1);
	run_tests(life_tests, argv + 1);
	run_tests(walk_tests, argv + 1);
	run_tests(view_tests, argv + 1);
	if (probe_ops() != &source_kmod)
		run_tests(event_tests, argv + 1);
	run_tests(host_tests, argv + 1);
	if (probe_ops() == &source_kmod) {
		run_tests(kmod_tests, argv + 1);
		run_tests(kmod_life_tests, argv + 1);
	}
	printf("%u passed, %u failed, %u skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
	return count[FAILED] || !count[PASSED];
}
