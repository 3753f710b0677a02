// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "source/bpf_probe.h"
#include "source/cpus.h"
#include "source/events.h"
#include "source/idle.h"

Suite *source_suite(void);

static uint32_t cpus_count(const struct cpus *c)
{
	uint32_t n = 0;

	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++)
		n += cpus_has(c, cpu);
	return n;
}

START_TEST(cpu_list_is_read_as_the_kernel_writes_it)
{
	struct cpus c;

	ck_assert_int_eq(cpus_parse("0-3,8\n", &c), 0);
	ck_assert_uint_eq(cpus_count(&c), 5);
	ck_assert(cpus_has(&c, 0) && cpus_has(&c, 3) && cpus_has(&c, 8));
	ck_assert(!cpus_has(&c, 4) && !cpus_has(&c, 7) && !cpus_has(&c, 9) && !cpus_has(&c, 4000000000U));
	ck_assert_int_eq(cpus_parse(" 5 , 63-64", &c), 0);
	ck_assert_uint_eq(cpus_count(&c), 3);
	ck_assert_int_eq(cpus_parse("0-8191", &c), 0);
	ck_assert_uint_eq(cpus_count(&c), CPUS_MAX);
}
END_TEST

static const struct {
	const char *text;
	int err;
} wrong_lists[] = {
	{"", -EINVAL},     {",", -EINVAL},   {"1,", -EINVAL},  {"a", -EINVAL},      {"3-1", -EINVAL},
	{"1-", -EINVAL},   {"-1", -EINVAL},  {"1 2", -EINVAL}, {"8192", -ERANGE},   {"0-99999999999", -ERANGE},
	{"1,2x", -EINVAL}, {"0x1", -EINVAL},
};

START_TEST(wrong_cpu_list_is_refused)
{
	struct cpus c = {.word = {7}};

	ck_assert_int_eq(cpus_parse(wrong_lists[_i].text, &c), wrong_lists[_i].err);
	ck_assert_uint_eq(c.word[0], 7);
}
END_TEST

START_TEST(this_machine_has_cpus)
{
	struct cpus online;
	uint32_t nr;

	ck_assert_int_eq(cpus_online(&online), 0);
	ck_assert_int_eq(cpus_possible(&nr), 0);
	ck_assert_uint_ge(nr, cpus_count(&online));
}
END_TEST

static const struct {
	const char *release, *version;
	unsigned int major, minor, patch;
	bool freezes;
} kernels[] = {
	{"5.10.0-32-cloud-amd64", "#1 SMP Debian 5.10.223-1 (2024-08-10)", 5, 10, 223, false},
	{"5.18.19", "#1 SMP", 5, 18, 19, false},
	{"5.19.0", "#1 SMP", 5, 19, 0, true},
	{"6.0.12-300.fc37", "#1 SMP", 6, 0, 12, true},
	{"6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", 6, 1, 27, true},
	{"6.1.0-50-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)", 6, 1, 176, false},
	{"6.1.35", "#1 SMP", 6, 1, 35, true},
	{"6.1.36", "#1 SMP", 6, 1, 36, false},
	{"6.1.0-9-amd64", "#1 SMP Debian 5.10.223-1", 6, 1, 0, true}, /* a text of another kernel says nothing */
	{"6.2.16", "#1", 6, 2, 16, true},
	{"6.3.9", "#1", 6, 3, 9, true},
	{"6.3.10", "#1", 6, 3, 10, false},
	{"6.4.0", "#1", 6, 4, 0, false},
	{"6.12.107+deb13-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-08-29)", 6, 12, 107, false},
	{"7.2-rc1", "#1", 7, 2, 0, false},
};

START_TEST(kernels_that_can_freeze_are_known)
{
	struct kernel_version v;

	ck_assert_int_eq(kernel_version_parse(kernels[_i].release, kernels[_i].version, &v), 0);
	ck_assert_uint_eq(v.major, kernels[_i].major);
	ck_assert_uint_eq(v.minor, kernels[_i].minor);
	ck_assert_uint_eq(v.patch, kernels[_i].patch);
	ck_assert(kernel_can_freeze(&v) == kernels[_i].freezes);
}
END_TEST

START_TEST(release_without_a_version_is_refused)
{
	struct kernel_version v;

	ck_assert_int_eq(kernel_version_parse("", "", &v), -EINVAL);
	ck_assert_int_eq(kernel_version_parse("linux", "Debian 6.1.1", &v), -EINVAL);
}
END_TEST

START_TEST(counters_are_read_when_they_balance)
{
	struct otp_cpu_counters c = {.ticks = 10, .taken = 7, .put = 6}, copy;

	c.skip[OTP_SKIP_IDLE] = 3;
	ck_assert(!counters_read(&c, &copy));
	c.lost[OTP_LOSS_RING_FULL] = 1;
	ck_assert(counters_read(&c, &copy));
	ck_assert_uint_eq(copy.put, 6);
	c.skip[OTP_SKIP_STOPPED]++;
	ck_assert(!counters_balanced(&c));
}
END_TEST

static const struct {
	struct source_config cfg;
	const char *word;
} wrong_configs[] = {
	{{.frequency_hz = 0}, "frequency_hz"},
	{{.frequency_hz = 10001}, "frequency_hz"},
	{{.frequency_hz = 20, .ring_bytes = 12288}, "ring_bytes"},
	{{.frequency_hz = 20, .ring_bytes = 512}, "ring_bytes"},
	{{.frequency_hz = 20, .cpus = "one"}, "cpus"},
};

START_TEST(wrong_configuration_is_named)
{
	char why[SOURCE_WHY] = "";
	struct source *s = NULL;

	ck_assert_int_eq(source_open(&source_perf, &wrong_configs[_i].cfg, &s, why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, wrong_configs[_i].word));
	ck_assert_ptr_null(s);
}
END_TEST

START_TEST(missing_module_is_named_with_its_package)
{
	const struct source_config cfg = {.frequency_hz = 20};
	char why[SOURCE_WHY] = "";
	struct stat st;

	/* In a pid namespace of its own, or where it is loaded, another sentence holds. */
	if (access("/dev/otprof", F_OK) == 0 || (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != 0xEFFFFFFCU))
		return;
	ck_assert_int_eq(source_kmod.probe(&cfg, why), -ENOENT);
	ck_assert_ptr_nonnull(strstr(why, "otprof-dkms"));
	ck_assert_ptr_nonnull(strstr(why, "modprobe otprof"));
}
END_TEST

/* What an event reads as: value, time enabled, time running. */
static bool dead_by(const uint64_t *times, size_t bytes)
{
	int fds[2];
	bool dead;

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], times, bytes), (ssize_t)bytes);
	close(fds[1]);
	dead = event_dead(fds[0]);
	close(fds[0]);
	return dead;
}

START_TEST(event_whose_time_stands_still_is_dead)
{
	const uint64_t goes_on[] = {5, 100, 100, 5, 101, 101}, stands[] = {5, 100, 100, 5, 100, 100};
	const uint64_t waits[] = {5, 100, 50, 5, 101, 50};

	ck_assert(!dead_by(goes_on, sizeof(goes_on)));
	ck_assert(!dead_by(waits, sizeof(waits)));
	ck_assert(dead_by(stands, sizeof(stands)));
}
END_TEST

/* The kernel answers so for a pinned event that found no counter. */
START_TEST(event_that_reads_as_nothing_is_dead)
{
	const uint64_t once[] = {5, 100, 100};

	ck_assert(dead_by(once, 0));
	ck_assert(dead_by(once, sizeof(once)));
}
END_TEST

START_TEST(idle_time_is_idle_and_waiting)
{
	char text[] = "cpu  9 9 9 9 9 9 9 0 0 0\n"
		      "cpu1 132789 64287 53127 248588 527 0 4756 601 0 0\n"
		      "cpu3 1 1 1 7 3\n"
		      "cpu4 1 1 1 18446744073709551615 3\n"
		      "cpu99 1 1 1 5 5 0\n"
		      "cpu2 x\n"
		      "intr 5 4 3 2 1\n"
		      "cpu0 1 1 1 1 1\n";
	uint64_t ns[5] = {42, 42, 42, 42, 42};
	FILE *f = fmemopen(text, strlen(text), "r");

	ck_assert_ptr_nonnull(f);
	idle_parse(f, 10000000, ns, 5);
	fclose(f);
	ck_assert_uint_eq(ns[0], 42);
	ck_assert_uint_eq(ns[1], (248588 + 527) * 10000000ULL);
	ck_assert_uint_eq(ns[2], 42);
	ck_assert_uint_eq(ns[3], 10 * 10000000ULL);
	ck_assert_uint_eq(ns[4], 42);
}
END_TEST

START_TEST(idle_time_of_this_machine_does_not_fall)
{
	uint64_t first[4] = {0}, second[4] = {0};

	ck_assert_int_eq(idle_read(first, 4), 0);
	ck_assert_int_eq(idle_read(second, 4), 0);
	ck_assert(first[0] > 0 && second[0] >= first[0]);
}
END_TEST

Suite *source_suite(void)
{
	Suite *s = suite_create("source");
	TCase *t = tcase_create("host");

	tcase_add_test(t, cpu_list_is_read_as_the_kernel_writes_it);
	tcase_add_loop_test(t, wrong_cpu_list_is_refused, 0, sizeof(wrong_lists) / sizeof(wrong_lists[0]));
	tcase_add_test(t, this_machine_has_cpus);
	tcase_add_loop_test(t, kernels_that_can_freeze_are_known, 0, sizeof(kernels) / sizeof(kernels[0]));
	tcase_add_test(t, release_without_a_version_is_refused);
	tcase_add_test(t, counters_are_read_when_they_balance);
	tcase_add_test(t, missing_module_is_named_with_its_package);
	tcase_add_test(t, event_whose_time_stands_still_is_dead);
	tcase_add_test(t, event_that_reads_as_nothing_is_dead);
	tcase_add_test(t, idle_time_is_idle_and_waiting);
	tcase_add_test(t, idle_time_of_this_machine_does_not_fall);
	tcase_add_loop_test(t, wrong_configuration_is_named, 0, sizeof(wrong_configs) / sizeof(wrong_configs[0]));
	suite_add_tcase(s, t);
	return s;
}
