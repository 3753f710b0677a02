// SPDX-License-Identifier: Apache-2.0
#include <check.h>

#include "base/cleanup.h"
#include "daemon/sandbox/sandbox.h"

Suite *sandbox_users_suite(void);

/* Of nobody: not of services with a dynamic user (61184 to 65519), of user namespaces or of containers. */
static bool is_free(uid_t id)
{
	return id > 65535 && id < 100000;
}

START_TEST(workers_without_users_have_ids_that_nobody_assigns)
{
	const struct config c = {.engine_user = (char *)"otprof-check-none", .net_user = (char *)"otprof-check-none",
				  .hub_user = (char *)"otprof-check-none"};
	struct sandbox_user users[7];

	ck_assert_int_eq(sandbox_user_engine(&c, false, &users[0]), 0);
	ck_assert_int_eq(sandbox_user_net(&c, false, &users[1]), 0);
	ck_assert_int_eq(sandbox_user_opener(&c, &users[2]), 0);
	ck_assert_int_eq(sandbox_user_indexer(&c, &users[3]), 0);
	ck_assert_int_eq(sandbox_user_fetcher(&c, &users[4]), 0);
	ck_assert_int_eq(sandbox_user_decoder(&c, &users[5]), 0);
	ck_assert_int_eq(sandbox_user_hub(&c, false, &users[6]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		ck_assert_msg(is_free(users[i].uid) && users[i].uid == users[i].gid, "%u", users[i].uid);
		for (size_t j = 0; j < i; j++)
			ck_assert_uint_ne(users[i].uid, users[j].uid);
	}
}
END_TEST

Suite *sandbox_users_suite(void)
{
	Suite *s = suite_create("sandbox_users");
	TCase *t = tcase_create("sandbox_users");

	tcase_add_test(t, workers_without_users_have_ids_that_nobody_assigns);
	suite_add_tcase(s, t);
	return s;
}
