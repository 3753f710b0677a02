// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/limits/cgmem.h"

Suite *cgmem_suite(void);

#define MIB (1ULL << 20)

static char dir[64];
static struct cgmem got;

static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", dir, path);
	for (char *at = strchr(full + strlen(dir) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	strcpy(dir, "/tmp/otprof-cgmem-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void teardown(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_version_2(void)
{
	put("/proc/self/cgroup", "0::/system.slice/otprofd.service\n");
	put("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
	put("/sys/fs/cgroup/system.slice/otprofd.service/memory.max", "41943040\n");
	put("/sys/fs/cgroup/system.slice/otprofd.service/memory.high", "max\n");
	put("/sys/fs/cgroup/system.slice/otprofd.service/memory.current", "31457280\n");
	put("/sys/fs/cgroup/system.slice/otprofd.service/memory.stat",
	    "anon 1\nfile 2\ninactive_file 2097152\nactive_file 1048576\n");
}

START_TEST(version_2_counts_what_cannot_be_dropped)
{
	put_version_2();
	ck_assert(cgmem_read(dir, &got));
	ck_assert_int_eq(got.version, 2);
	ck_assert_uint_eq(got.limit, 40 * MIB);
	ck_assert_uint_eq(got.used, 27 * MIB);
}
END_TEST

START_TEST(high_counts_where_it_is_lower)
{
	put_version_2();
	put("/sys/fs/cgroup/system.slice/otprofd.service/memory.high", "33554432\n");
	ck_assert(cgmem_read(dir, &got));
	ck_assert_uint_eq(got.limit, 32 * MIB);
}
END_TEST

START_TEST(group_above_that_is_nearer_to_its_limit_counts)
{
	put_version_2();
	put("/sys/fs/cgroup/system.slice/memory.max", "104857600\n");
	put("/sys/fs/cgroup/system.slice/memory.current", "99614720\n");
	ck_assert(cgmem_read(dir, &got));
	ck_assert_uint_eq(got.limit, 100 * MIB);
	ck_assert_uint_eq(got.used, 95 * MIB);
}
END_TEST

START_TEST(no_limit_is_zero)
{
	put_version_2();
	put("/sys/fs/cgroup/system.slice/otprofd.service/memory.max", "max\n");
	ck_assert(cgmem_read(dir, &got));
	ck_assert_uint_eq(got.limit, 0);
}
END_TEST

START_TEST(version_1_is_read_beside_an_empty_version_2)
{
	put("/proc/self/cgroup", "5:cpu,memory:/a/b\n1:name=systemd:/x\n0::/\n");
	put("/sys/fs/cgroup/unified/cgroup.controllers", "\n");
	put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "41943040\n");
	put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "41943040\n");
	put("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 0\n");
	ck_assert(cgmem_read(dir, &got));
	ck_assert_int_eq(got.version, 1);
	ck_assert_uint_eq(got.limit, 40 * MIB);
	ck_assert_uint_eq(got.used, 30 * MIB);
}
END_TEST

START_TEST(in_a_container_the_mount_is_our_own_group)
{
	put("/proc/self/cgroup", "0::/../../kubepods/pod1/abc\n");
	put("/sys/fs/cgroup/cgroup.controllers", "memory\n");
	put("/sys/fs/cgroup/memory.max", "41943040\n");
	put("/sys/fs/cgroup/memory.current", "1048576\n");
	ck_assert(cgmem_read(dir, &got));
	ck_assert_uint_eq(got.limit, 40 * MIB);
}
END_TEST

START_TEST(without_a_controller_there_is_nothing)
{
	ck_assert(!cgmem_read(dir, &got));
	put("/proc/self/cgroup", "0::/\nrubbish\n:::\n");
	ck_assert(!cgmem_read(dir, &got));
	ck_assert_uint_eq(got.limit, 0);
}
END_TEST

Suite *cgmem_suite(void)
{
	Suite *s = suite_create("cgmem");
	TCase *t = tcase_create("cgmem");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, version_2_counts_what_cannot_be_dropped);
	tcase_add_test(t, high_counts_where_it_is_lower);
	tcase_add_test(t, group_above_that_is_nearer_to_its_limit_counts);
	tcase_add_test(t, no_limit_is_zero);
	tcase_add_test(t, version_1_is_read_beside_an_empty_version_2);
	tcase_add_test(t, in_a_container_the_mount_is_our_own_group);
	tcase_add_test(t, without_a_controller_there_is_nothing);
	suite_add_tcase(s, t);
	return s;
}
