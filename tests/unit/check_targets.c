// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

Suite *targets_suite(void);

/* A directory plays the hierarchy of cgroups, and a map the sampler's rules. */
static struct monitor *m;
static struct config config;
static char root[64];
static struct map rules;

static int set_cgroup(struct source *s, uint64_t id, const struct otp_cgroup_rule *r)
{
	if (r)
		return map_put(&rules, id, r->select);
	map_remove(&rules, id);
	return 0;
}

static const struct source_ops ops = {.name = "test", .set_cgroup = set_cgroup};
static struct source source = {.ops = &ops};

static const char *id_of(unsigned int n)
{
	static char id[HOST_CONTAINER_ID + 1];

	snprintf(id, sizeof(id), "%064x", n);
	return id;
}

static void dir_of(unsigned int n, char to[256])
{
	snprintf(to, 256, "%s/docker-%s.scope", root, id_of(n));
}

static void make(unsigned int n)
{
	char path[256];

	dir_of(n, path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static uint8_t rule_of(unsigned int n)
{
	const uint64_t *have;
	char path[256];
	struct stat st;

	dir_of(n, path);
	ck_assert_int_eq(stat(path, &st), 0);
	have = map_find(&rules, st.st_ino);
	return have ? (uint8_t)*have : OTP_SELECT_UNSET;
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void setup(void)
{
	log_init("test", LOG_LEVEL_ERROR);
	/* In memory: a flood of directories would wait for a disk. */
	strcpy(root, access("/dev/shm", W_OK) ? "/tmp/otprof-targets-XXXXXX" : "/dev/shm/otprof-targets-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	m = calloc(1, sizeof(*m));
	m->config = &config;
	config.nr_targets = 1;
	config.targets[0] = (struct config_target){.kind = TARGET_CONTAINER, .exclude = true, .text = (char *)"web"};
	m->sampler.source = &source;
	m->sampler.sampling = true;
	m->targets.rules.wanted = m->targets.rules.may_exclude = true;
	m->targets.rules.inotify_fd = -1;
	strcpy(m->targets.rules.root, root);
}

static void teardown(void)
{
	target_rules_close(m);
	target_names_done(&m->targets.names);
	ck_assert_uint_eq(rules.count, 0);
	map_done(&rules);
	free(m);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void walk(void)
{
	m->targets.rules.due_ns = 0;
	target_rules_run(m, clock_now_ns());
}

/* name: of container n; NULL: it has none. */
static void answer(unsigned int n, const char *name, int err)
{
	char path[HOST_PATH_MAX];
	struct buf b = {0};

	ck_assert(target_names_question(&m->targets.names, path));
	if (name) {
		buf_add(&b, id_of(n), HOST_CONTAINER_ID);
		buf_add(&b, name, strlen(name) + 1);
	}
	target_names_answer(&m->targets.names, err, (char *)b.data, b.len, clock_now_ns());
	buf_done(&b);
}

START_TEST(container_is_excluded_until_its_name_is_resolved)
{
	make(1);
	make(2);
	walk();
	ck_assert_uint_eq(rule_of(1), OTP_SELECT_NO);
	ck_assert_uint_eq(rule_of(2), OTP_SELECT_NO);
	answer(1, "web", 0);
	walk();
	ck_assert_uint_eq(rule_of(1), OTP_SELECT_NO);
	ck_assert_uint_eq(rule_of(2), OTP_SELECT_UNSET);
}
END_TEST

START_TEST(container_stays_excluded_where_the_question_failed)
{
	make(1);
	walk();
	answer(1, NULL, -ETIMEDOUT);
	walk();
	ck_assert_uint_eq(rule_of(1), OTP_SELECT_NO);
	ck_assert(target_names_settled(&m->targets.names));
}
END_TEST

START_TEST(other_cgroups_do_not_wait_for_a_name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/a.service", root);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	walk();
	ck_assert_uint_eq(rules.count, 0);
	ck_assert(target_names_settled(&m->targets.names));
}
END_TEST

START_TEST(include_line_waits_for_the_name_without_a_rule)
{
	config.targets[0].exclude = m->targets.rules.may_exclude = false;
	make(1);
	walk();
	ck_assert_uint_eq(rule_of(1), OTP_SELECT_UNSET);
	answer(1, "web", 0);
	walk();
	ck_assert_uint_eq(rule_of(1), OTP_SELECT_YES);
}
END_TEST

/* Anyone with a cgroup of its own makes as many directories as it likes. */
START_TEST(flood_of_ids_takes_no_rule_from_a_container_that_is_excluded)
{
	make(5000);
	walk();
	answer(5000, "web", 0);
	for (unsigned int i = 0; i < 4200; i++)
		make(i);
	for (int i = 0; i < 3; i++) {
		walk();
		ck_assert_uint_eq(rule_of(5000), OTP_SELECT_NO);
		ck_assert_uint_eq(rules.count, 4096);
		answer(0, NULL, i ? 0 : -ETIMEDOUT);
	}
	walk();
	ck_assert_uint_eq(rule_of(5000), OTP_SELECT_NO);
}
END_TEST

/* Unresolved names, however many, are no reason to walk all the time. */
START_TEST(walk_after_an_answer_keeps_the_pause)
{
	struct target_rules *r = &m->targets.rules;
	uint64_t walked;

	make(1);
	walk();
	r->took_ns = NSEC_PER_SEC;
	r->due_ns = UINT64_MAX;
	walked = r->walked_ns;
	target_rules_names_known(m);
	ck_assert_uint_eq(r->walked_ns, walked);
	ck_assert_uint_eq(r->due_ns, walked + 20 * NSEC_PER_SEC);
	m->sampler.sampling = false; /* which waits for the selection */
	target_rules_names_known(m);
	ck_assert_uint_gt(r->walked_ns, walked);
}
END_TEST

/* A cgroup below root. */
static void make_named(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static uint8_t rule_of_named(const char *name)
{
	const uint64_t *have;
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	ck_assert_int_eq(stat(path, &st), 0);
	have = map_find(&rules, st.st_ino);
	return have ? (uint8_t)*have : OTP_SELECT_UNSET;
}

static void select_units(const char *included, const char *live)
{
	config.nr_targets = 2;
	config.targets[0] = (struct config_target){.kind = TARGET_UNIT, .text = (char *)(uintptr_t)included};
	config.targets[1] = (struct config_target){.kind = TARGET_UNIT, .live = true, .text = (char *)(uintptr_t)live};
}

START_TEST(cgroup_is_selected_where_both_lists_match)
{
	make_named("a.service");
	make_named("b.service");
	make_named("c.service");
	make_named("b.service/inner");
	select_units("[abc].service", "b.service"); /* no pattern: nothing is included */
	walk();
	ck_assert_uint_eq(rules.count, 0);
	select_units("?.service", "b.service");
	walk();
	ck_assert_uint_eq(rule_of_named("b.service"), OTP_SELECT_YES);
	ck_assert_uint_eq(rules.count, 1);
}
END_TEST

START_TEST(lists_may_match_a_cgroup_and_one_above_it)
{
	make_named("outer.service");
	make_named("other.service");
	make_named("outer.service/inner.service");
	make_named("other.service/inner.service");
	select_units("outer.service", "inner.service");
	walk();
	ck_assert_uint_eq(rule_of_named("outer.service"), OTP_SELECT_UNSET);
	ck_assert_uint_eq(rule_of_named("outer.service/inner.service"), OTP_SELECT_YES);
	ck_assert_uint_eq(rule_of_named("other.service/inner.service"), OTP_SELECT_UNSET);
	select_units("inner.service", "outer.service");
	walk();
	ck_assert_uint_eq(rule_of_named("outer.service/inner.service"), OTP_SELECT_YES);
	ck_assert_uint_eq(rules.count, 1);
}
END_TEST

START_TEST(selection_alone_includes_and_exclusions_stay)
{
	make_named("a.service");
	make_named("b.service");
	select_units("a.service", "?.service");
	config.targets[0].exclude = true;
	walk();
	ck_assert_uint_eq(rule_of_named("a.service"), OTP_SELECT_NO);
	ck_assert_uint_eq(rule_of_named("b.service"), OTP_SELECT_YES);
}
END_TEST

Suite *targets_suite(void)
{
	Suite *s = suite_create("targets");
	TCase *t = tcase_create("rules");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, container_is_excluded_until_its_name_is_resolved);
	tcase_add_test(t, container_stays_excluded_where_the_question_failed);
	tcase_add_test(t, other_cgroups_do_not_wait_for_a_name);
	tcase_add_test(t, include_line_waits_for_the_name_without_a_rule);
	tcase_add_test(t, flood_of_ids_takes_no_rule_from_a_container_that_is_excluded);
	tcase_add_test(t, walk_after_an_answer_keeps_the_pause);
	tcase_add_test(t, cgroup_is_selected_where_both_lists_match);
	tcase_add_test(t, lists_may_match_a_cgroup_and_one_above_it);
	tcase_add_test(t, selection_alone_includes_and_exclusions_stay);
	suite_add_tcase(s, t);
	return s;
}
