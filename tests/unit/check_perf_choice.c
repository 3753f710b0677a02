// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "source/perf_choice.h"
#include "source/softirq_code.h"

Suite *perf_choice_suite(void);

/* Pids that no /proc has: what is known of them comes from records. */
#define SHELL 5000001
#define CHILD 5000002
#define GRAND 5000003

static struct perf_tasks tasks;
static struct perf_choice choice;
static struct perf_subject who;

static void setup(void)
{
	const struct otp_defaults d = {.stack_bytes = 4096, .select = OTP_SELECT_YES, .kthreads = OTP_SELECT_UNSET,
				       .ancestors = OTP_ANCESTORS_MAX};

	memset(&tasks, 0, sizeof(tasks));
	perf_choice_init(&choice, &d, 4);
}

static void teardown(void)
{
	perf_choice_done(&choice);
	perf_tasks_done(&tasks);
}

static void fork_of(uint32_t parent, uint32_t pid, uint64_t time_ns)
{
	perf_tasks_apply(&tasks, &(struct proc_event){.type = PROC_FORK, .pid = pid, .tid = pid, .ppid = parent,
						      .ptid = parent, .time_ns = time_ns});
}

static void said(uint8_t type, uint32_t pid, uint32_t tid, const char *name, uint64_t time_ns)
{
	perf_tasks_apply(&tasks, &(struct proc_event){.type = type, .pid = pid, .tid = tid, .time_ns = time_ns,
						      .name = name, .name_len = name ? strlen(name) : 0});
}

static bool make(uint32_t pid)
{
	const struct perf_sample s = {.pid = pid, .tid = pid, .valid = 1};

	return perf_choice_make(&choice, &tasks, &s, &who);
}

/* --- who runs --- */

START_TEST(fork_gives_a_start_and_exec_another_identity)
{
	fork_of(1, SHELL, 1000);
	ck_assert(make(SHELL));
	ck_assert(who.start_ns == 1000 && who.exec_id == 0 && who.ppid == 1 && !who.mode);
	said(PROC_EXEC, SHELL, SHELL, "bash", 1010);
	ck_assert(make(SHELL));
	ck_assert(who.start_ns == 1000 && who.exec_id == 1);
	ck_assert_str_eq(who.comm, "bash");
	fork_of(SHELL, CHILD, 2000);
	ck_assert(make(CHILD));
	ck_assert(who.start_ns == 2000 && who.exec_id == 1 && who.ppid == SHELL);
	ck_assert_str_eq(who.comm, "bash");
	said(PROC_EXEC, CHILD, CHILD, "a name that is too long for it", 2010);
	ck_assert(make(CHILD));
	ck_assert(who.exec_id == 2);
	ck_assert_str_eq(who.comm, "a name that is ");
}
END_TEST

START_TEST(reused_pid_has_another_start)
{
	fork_of(1, SHELL, 1000);
	said(PROC_EXIT, SHELL, SHELL, NULL, 1500);
	ck_assert(make(SHELL));
	ck_assert_uint_eq(who.start_ns, 1000); /* a last sample behind its exit */
	fork_of(1, SHELL, 2000);
	ck_assert(make(SHELL));
	ck_assert_uint_eq(who.start_ns, 2000);
}
END_TEST

START_TEST(dead_are_forgotten_after_a_while)
{
	fork_of(1, SHELL, 1000);
	said(PROC_EXIT, SHELL, SHELL, NULL, 1000000000);
	perf_tasks_tick(&tasks, 2000000000);
	ck_assert_uint_eq(tasks.processes.count, 2); /* its parent was looked at */
	perf_tasks_tick(&tasks, 9000000000);
	ck_assert_uint_eq(tasks.processes.count, 1);
}
END_TEST

START_TEST(threads_have_names_of_their_own)
{
	const struct perf_sample s = {.pid = SHELL, .tid = CHILD, .valid = 1};

	fork_of(1, SHELL, 1000);
	said(PROC_EXEC, SHELL, SHELL, "server", 1010);
	perf_tasks_apply(&tasks, &(struct proc_event){.type = PROC_FORK, .pid = SHELL, .tid = CHILD, .ppid = SHELL,
						      .ptid = SHELL, .time_ns = 1020});
	ck_assert(perf_choice_make(&choice, &tasks, &s, &who));
	ck_assert_str_eq(who.comm, "server");
	said(PROC_COMM, SHELL, CHILD, "worker-1", 1030);
	ck_assert(perf_choice_make(&choice, &tasks, &s, &who));
	ck_assert_str_eq(who.comm, "worker-1");
	ck_assert(make(SHELL));
	ck_assert_str_eq(who.comm, "server");
}
END_TEST

START_TEST(older_process_is_read_from_proc)
{
	ck_assert(make((uint32_t)getpid()));
	ck_assert_uint_gt(who.start_ns, 0);
	ck_assert_uint_eq(who.ppid, (uint32_t)getppid());
	ck_assert_str_ne(who.comm, "");
}
END_TEST

START_TEST(unknown_process_is_sampled_without_an_identity)
{
	ck_assert(make(SHELL));
	ck_assert(!who.start_ns && !who.ppid && who.stack_bytes == 4096);
}
END_TEST

START_TEST(thread_without_user_registers_is_exiting_or_the_kernels)
{
	const struct perf_sample s = {.pid = SHELL, .tid = SHELL, .kernel = true}, k = {.pid = CHILD, .tid = CHILD, .kernel = true};

	fork_of(1, SHELL, 1000);
	ck_assert(perf_choice_make(&choice, &tasks, &s, &who));
	ck_assert_uint_eq(who.mode, OTP_MODE_EXITING);
	fork_of(2, CHILD, 1000);
	ck_assert(perf_choice_make(&choice, &tasks, &k, &who));
	ck_assert_uint_eq(who.mode, OTP_MODE_KTHREAD);
	choice.defaults.kthreads = OTP_SELECT_NO;
	ck_assert(!perf_choice_make(&choice, &tasks, &k, &who));
}
END_TEST

START_TEST(interrupts_on_an_idle_cpu_are_of_no_process)
{
	const struct perf_sample s = {.kernel = true};

	ck_assert(perf_choice_make(&choice, &tasks, &s, &who));
	ck_assert_uint_eq(who.mode, OTP_MODE_KTHREAD);
	ck_assert_str_eq(who.comm, OTP_COMM_INTERRUPTS);
	ck_assert(!who.start_ns && !who.exec_id && !who.cgroup_id && !who.ppid && !who.plan_gen);
	ck_assert_uint_eq(tasks.reads, 0);
	choice.defaults.kthreads = OTP_SELECT_NO;
	ck_assert(!perf_choice_make(&choice, &tasks, &s, &who));
}
END_TEST

static void expect_softirqs(const char *kallsyms, uint64_t ip, bool expected)
{
	const uint64_t ips[] = {0xffffffff81000010, ip};
	FILE *f = fmemopen((void *)(uintptr_t)kallsyms, strlen(kallsyms), "r");
	struct softirq_code c;

	softirq_code_parse(f, &c);
	fclose(f);
	ck_assert_int_eq(softirq_code_has(&c, ips, 2), expected);
	ck_assert(!softirq_code_has(&c, ips, 1));
}

START_TEST(softirqs_are_known_by_their_function)
{
	const char *old = "ffffffff81000000 T do_idle\nffffffff81000100 T __do_softirq_own\n"
			  "ffffffff81000200 T __do_softirq\nffffffff81000200 T __softirqentry_text_start\n"
			  "ffffffff81000300 T next\n";
	const char *new = "ffffffff81000020 t handle_softirqs.cold\nffffffff81000040 t other\n"
			  "ffffffff81000100 t handle_softirqs.constprop.0\nffffffff81000200 T next\n";
	const char *hidden = "0000000000000000 T __do_softirq\n0000000000000000 T next\n";

	expect_softirqs(old, 0xffffffff81000200, true);
	expect_softirqs(old, 0xffffffff810002ff, true);
	expect_softirqs(old, 0xffffffff81000300, false);
	expect_softirqs(old, 0xffffffff81000180, false);
	expect_softirqs(new, 0xffffffff81000180, true);
	expect_softirqs(hidden, 0xffffffff81000200, false);
	expect_softirqs(" ", 0xffffffff81000200, false);
}
END_TEST

/* --- selection --- */

static struct otp_plan plan_for(uint64_t start_ns, uint64_t exec_id, uint8_t select, uint32_t stack_bytes)
{
	return (struct otp_plan){.generation = 3, .start_ns = start_ns, .exec_id = exec_id, .select = select,
				 .stack_bytes = stack_bytes};
}

START_TEST(plan_holds_for_its_exec_only)
{
	struct otp_plan p = plan_for(1000, 0, OTP_SELECT_UNSET, 16384);

	fork_of(1, SHELL, 1000);
	ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL, &p), 0);
	ck_assert(make(SHELL));
	ck_assert(who.plan_gen == 3 && who.stack_bytes == 16384);
	said(PROC_EXEC, SHELL, SHELL, "x", 1010);
	ck_assert(make(SHELL));
	ck_assert(!who.plan_gen && who.stack_bytes == 4096);
	ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL, NULL), 0);
	ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL, NULL), 0);
}
END_TEST

START_TEST(descendants_belong_to_the_selected_process)
{
	struct otp_plan p = {.generation = 1, .select = OTP_SELECT_YES, .any_exec = 1, .stack_bytes = 8192};

	choice.defaults.select = OTP_SELECT_NO;
	fork_of(1, SHELL, 1000);
	fork_of(SHELL, CHILD, 1100);
	said(PROC_EXEC, CHILD, CHILD, "make", 1110);
	fork_of(CHILD, GRAND, 1200);
	ck_assert(!make(SHELL) && !make(GRAND));
	ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL, &p), 0);
	ck_assert(make(SHELL) && make(CHILD) && make(GRAND));
	ck_assert(who.stack_bytes == 4096 && !(who.mode & OTP_MODE_INHERITED));
	said(PROC_EXEC, SHELL, SHELL, "sh", 1300);
	ck_assert(make(SHELL) && make(GRAND));
	ck_assert_uint_eq(perf_choice_make(&choice, &tasks, &(struct perf_sample){.pid = 1, .tid = 1, .valid = 1}, &who), 0);
}
END_TEST

START_TEST(child_that_runs_the_same_program_inherits_the_copy)
{
	struct otp_plan p = plan_for(1000, 0, OTP_SELECT_UNSET, 16384);

	fork_of(1, SHELL, 1000);
	fork_of(SHELL, CHILD, 1100);
	ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL, &p), 0);
	ck_assert(make(CHILD));
	ck_assert(who.stack_bytes == 16384 && who.plan_gen == 3 && who.mode == OTP_MODE_INHERITED);
	said(PROC_EXEC, CHILD, CHILD, "other", 1200);
	ck_assert(make(CHILD));
	ck_assert(who.stack_bytes == 4096 && !who.plan_gen && !who.mode);
}
END_TEST

START_TEST(cgroup_rule_comes_before_the_default)
{
	const struct perf_sample in = {.pid = SHELL, .tid = SHELL, .valid = 1, .cgroup_id = 900}, out = {.pid = SHELL, .tid = SHELL, .valid = 1, .cgroup_id = 901};

	choice.defaults.select = OTP_SELECT_NO;
	choice.defaults.have_rules = 1;
	fork_of(1, SHELL, 1000);
	ck_assert_int_eq(perf_cgroups_set(&choice.cgroups, 900, OTP_SELECT_YES), 0);
	ck_assert(perf_choice_make(&choice, &tasks, &in, &who));
	ck_assert(!perf_choice_make(&choice, &tasks, &out, &who));
	ck_assert_int_eq(perf_cgroups_set(&choice.cgroups, 900, OTP_SELECT_UNSET), 0);
	ck_assert(!perf_choice_make(&choice, &tasks, &in, &who));
}
END_TEST

START_TEST(hint_is_for_those_without_a_plan)
{
	const char name[OTP_COMM_LEN] = "deep";

	fork_of(1, SHELL, 1000);
	said(PROC_EXEC, SHELL, SHELL, name, 1010);
	ck_assert_int_eq(perf_choice_set_hint(&choice, name, 12288), 0);
	ck_assert(make(SHELL));
	ck_assert_uint_eq(who.stack_bytes, 12288);
	ck_assert_uint_eq(perf_choice_deepest(&choice), 12288);
	ck_assert_int_eq(perf_choice_set_hint(&choice, name, 0), 0);
	ck_assert(make(SHELL));
	ck_assert_uint_eq(who.stack_bytes, 4096);
}
END_TEST

START_TEST(plans_of_the_dead_make_room_and_others_do_not)
{
	struct otp_plan p = plan_for(1, 0, OTP_SELECT_UNSET, 1024);
	const uint32_t alive[] = {1, (uint32_t)getpid(), (uint32_t)getppid()};

	for (uint32_t i = 0; i < 4; i++)
		ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL + i, &p), 0);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(perf_choice_set_plan(&choice, alive[i], &p), 0);
	choice.plans_max = (uint32_t)choice.plans.count;
	choice.swept_ns = 0;
	ck_assert_int_eq(perf_choice_set_plan(&choice, CHILD + 10, &p), -E2BIG);
	ck_assert_int_eq(perf_choice_set_plan(&choice, alive[0], &p), 0); /* replaces */
}
END_TEST

START_TEST(no_plan_asks_for_more_than_the_contract_has)
{
	struct otp_plan p = plan_for(1000, 0, OTP_SELECT_UNSET, UINT32_MAX);

	fork_of(1, SHELL, 1000);
	ck_assert_int_eq(perf_choice_set_plan(&choice, SHELL, &p), 0);
	ck_assert(make(SHELL));
	ck_assert_uint_eq(who.stack_bytes, OTP_STACK_LIMIT);
}
END_TEST

Suite *perf_choice_suite(void)
{
	Suite *s = suite_create("perf_choice");
	TCase *t = tcase_create("tasks");
	TCase *c = tcase_create("choice");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, fork_gives_a_start_and_exec_another_identity);
	tcase_add_test(t, interrupts_on_an_idle_cpu_are_of_no_process);
	tcase_add_test(t, softirqs_are_known_by_their_function);
	tcase_add_test(t, reused_pid_has_another_start);
	tcase_add_test(t, dead_are_forgotten_after_a_while);
	tcase_add_test(t, threads_have_names_of_their_own);
	tcase_add_test(t, older_process_is_read_from_proc);
	tcase_add_test(t, unknown_process_is_sampled_without_an_identity);
	tcase_add_test(t, thread_without_user_registers_is_exiting_or_the_kernels);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, plan_holds_for_its_exec_only);
	tcase_add_test(c, descendants_belong_to_the_selected_process);
	tcase_add_test(c, child_that_runs_the_same_program_inherits_the_copy);
	tcase_add_test(c, cgroup_rule_comes_before_the_default);
	tcase_add_test(c, hint_is_for_those_without_a_plan);
	tcase_add_test(c, plans_of_the_dead_make_room_and_others_do_not);
	tcase_add_test(c, no_plan_asks_for_more_than_the_contract_has);
	suite_add_tcase(s, c);
	return s;
}
