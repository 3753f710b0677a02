// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/doctor.h"

Suite *doctor_suite(void);

/* A host of our own making; what a test takes away is not there. */
static char root[] = "/tmp/otprof-doctor-XXXXXX", dir[64];
static struct finding found;

#define ALL_CAPS "\nCapEff:\t000001ffffffffff\n"

static void make_dirs(char *path)
{
	for (char *at = strchr(path + strlen(dir) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
}

static void put_bytes(const char *path, const void *data, size_t len)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", dir, path);
	make_dirs(full);
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, len, f), len);
	fclose(f);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void put_link(const char *path, const char *target)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", dir, path);
	make_dirs(full);
	unlink(full);
	ck_assert_int_eq(symlink(target, full), 0);
}

static void take(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", dir, path);
	ck_assert_int_eq(remove(full), 0);
}

static void setup(void)
{
	strcpy(dir, root);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	put("/proc/sys/kernel/osrelease", "6.12.9-amd64\n");
	put("/proc/sys/kernel/version", "#1 SMP Debian 6.12.9-1 (2025-01-10)\n");
	put("/proc/self/status", "Name:\totprof" ALL_CAPS);
	put("/proc/self/limits", "Limit\nMax locked memory         65536                65536                bytes\n");
	put_link("/proc/self/ns/pid", "pid:[4026531836]");
	put("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff81000100 T startup_64\n");
	put("/proc/sys/kernel/perf_event_paranoid", "2\n");
	put("/proc/sys/kernel/kptr_restrict", "1\n");
	put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n");
	put("/sys/kernel/btf/vmlinux", "\x9f\xeb");
	put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
	put("/sys/devices/system/cpu/online", "0-3,8\n");
	put("/run/systemd/system/x", "");
	put("/lib/systemd/system/otprofd.service", "");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void teardown(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs all; found is the one with this id. Returns the worst level. */
static enum doctor_level look(const char *id)
{
	enum doctor_level worst = DOCTOR_OK;
	struct finding f;
	struct doctor d;

	memset(&found, 0, sizeof(found));
	doctor_init(&d, dir);
	for (size_t i = 0; i < doctor_checks_nr; i++) {
		doctor_run(&d, i, &f);
		worst = MAX(worst, f.level);
		ck_assert_msg(f.level == DOCTOR_OK || f.fix[0] || !strcmp(f.id, "kernel"), "%s has no command", f.id);
		if (!strcmp(f.id, id))
			found = f;
	}
	ck_assert_str_eq(found.id, id);
	return worst;
}

static void ck_text(enum doctor_level level, const char *text, const char *fix)
{
	ck_assert_msg(found.level == level, "%s: level %d: %s", found.id, found.level, found.text);
	ck_assert_msg(strstr(found.text, text), "%s: %s", found.id, found.text);
	ck_assert_msg(strstr(found.fix, fix), "%s: %s", found.id, found.fix);
}

START_TEST(whole_host_is_ok)
{
	ck_assert_int_eq(look("sampler"), DOCTOR_OK);
	ck_text(DOCTOR_OK, "bpf can be used", "");
	look("kernel");
	ck_text(DOCTOR_OK, "6.12.9-amd64 (6.12.9)", "");
	look("memory");
	ck_text(DOCTOR_OK, "on 5 CPUs", "");
}
END_TEST

START_TEST(without_btf_the_module_is_what_is_left)
{
	take("/sys/kernel/btf/vmlinux");
	ck_assert_int_eq(look("btf"), DOCTOR_WARN);
	ck_text(DOCTOR_WARN, "No such file", "otprof-dkms");
	look("module");
	ck_text(DOCTOR_WARN, "not built", "apt install otprof-dkms");
	look("sampler");
	ck_text(DOCTOR_WARN, "only perf", "btf");
	put("/dev/otprof", "");
	look("sampler");
	ck_text(DOCTOR_OK, "kmod can be used; not bpf (btf)", "");
	look("module");
	ck_text(DOCTOR_OK, "loaded", "");
}
END_TEST

START_TEST(without_sys_a_mount_is_wanted)
{
	take("/sys/kernel/btf/vmlinux");
	take("/sys/kernel/btf");
	take("/sys/kernel/security/lockdown");
	take("/sys/kernel/security");
	take("/sys/kernel");
	look("btf");
	ck_text(DOCTOR_WARN, "no BTF", "mount -t sysfs");
}
END_TEST

START_TEST(paranoid_3_needs_an_administrator)
{
	put("/proc/sys/kernel/perf_event_paranoid", "3\n");
	look("perf_event_paranoid");
	ck_text(DOCTOR_OK, "= 3", "sysctl -w kernel.perf_event_paranoid=2");
	put("/proc/self/status", "\nCapEff:\t000001c000000000\n"); /* PERFMON, BPF, CHECKPOINT_RESTORE */
	look("perf_event_paranoid");
	ck_text(DOCTOR_WARN, "need CAP_SYS_ADMIN", "sysctl -w kernel.perf_event_paranoid=2");
	look("sampler");
	ck_assert_int_ne(found.level, DOCTOR_OK);
}
END_TEST

START_TEST(missing_capability_is_named)
{
	put("/proc/self/status", "\nCapEff:\t000001fffff7ffff\n"); /* all but SYS_PTRACE */
	look("capabilities");
	ck_text(DOCTOR_WARN, "missing: CAP_SYS_PTRACE.", "--cap-add");
	look("sampler");
	ck_text(DOCTOR_OK, "bpf", "");
	put("/proc/self/status", "\nCapEff:\t0000000000000000\n");
	look("capabilities");
	ck_text(DOCTOR_WARN, "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE", "sudo otprof doctor");
}
END_TEST

START_TEST(kernel_symbols_missing_or_hidden)
{
	take("/proc/kallsyms");
	look("kallsyms");
	ck_text(DOCTOR_WARN, "cannot be read", "CONFIG_KALLSYMS");
	put("/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T startup_64\n");
	put("/proc/sys/kernel/kptr_restrict", "2\n");
	look("kallsyms");
	ck_text(DOCTOR_WARN, "kptr_restrict = 2", "sysctl -w kernel.kptr_restrict=1");
}
END_TEST

START_TEST(cgroup_version_1_is_told)
{
	take("/sys/fs/cgroup/cgroup.controllers");
	put("/sys/fs/cgroup/memory/tasks", "");
	look("cgroup");
	ck_text(DOCTOR_WARN, "version 1:", "systemd.unified_cgroup_hierarchy=1");
	put("/sys/fs/cgroup/unified/cgroup.procs", "");
	look("cgroup");
	ck_text(DOCTOR_WARN, "version 1 with version 2 beside it", "systemd.unified_cgroup_hierarchy=1");
}
END_TEST

START_TEST(no_cgroup_is_told)
{
	take("/sys/fs/cgroup/cgroup.controllers");
	look("cgroup");
	ck_text(DOCTOR_WARN, "none is mounted", "mount -t cgroup2");
}
END_TEST

START_TEST(kernels_that_can_freeze_are_refused)
{
	put("/proc/sys/kernel/osrelease", "6.2.0-39-generic\n");
	put("/proc/sys/kernel/version", "#40 SMP\n");
	look("kernel_freeze");
	ck_text(DOCTOR_WARN, "can freeze", "otprof-dkms");
	put("/proc/sys/kernel/osrelease", "6.1.0-50-amd64\n");
	put("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)\n");
	look("kernel_freeze");
	ck_text(DOCTOR_OK, "", "");
	look("kernel");
	ck_text(DOCTOR_OK, "(6.1.140)", "");
}
END_TEST

START_TEST(old_kernel_wants_the_module)
{
	put("/proc/sys/kernel/osrelease", "4.19.0-1\n");
	put("/proc/sys/kernel/version", "#1 SMP\n");
	look("kernel");
	ck_text(DOCTOR_WARN, "no BPF ring buffer", "otprof-dkms");
	look("memlock");
	ck_text(DOCTOR_OK, "64 KiB", "");
	put("/proc/sys/kernel/osrelease", "4.4.155\n");
	look("kernel");
	ck_text(DOCTOR_WARN, "no BPF ring buffer", "otprof-dkms");
	put("/proc/sys/kernel/osrelease", "4.3.6\n");
	look("kernel");
	ck_text(DOCTOR_FAIL, "older than 4.4", "newer kernel");
	look("sampler");
	ck_text(DOCTOR_FAIL, "none can be used", "");
}
END_TEST

/* Commands are for who is there to run them. */
START_TEST(packages_are_installed_by_what_is_there)
{
	put("/proc/sys/kernel/osrelease", "5.4.0-1\n");
	look("kernel");
	ck_text(DOCTOR_WARN, "", "apt install otprof-dkms");
	put("/usr/bin/dnf", "");
	look("kernel");
	ck_text(DOCTOR_WARN, "", "dnf install otprof-dkms");
	look("debug_symbols");
	ck_text(DOCTOR_OK, "", "dnf install PACKAGE-debuginfo");
	put("/var/lib/dkms/otprof/0.1.0/source", "");
	look("dkms");
	ck_text(DOCTOR_WARN, "headers of 5.4.0-1 are missing", "dnf install kernel-devel-5.4.0-1");
	put("/usr/bin/apt-get", "");
	look("dkms");
	ck_text(DOCTOR_WARN, "", "apt install linux-headers-5.4.0-1");
}
END_TEST

START_TEST(memlock_counts_before_5_11)
{
	put("/proc/sys/kernel/osrelease", "5.10.0-30-amd64\n");
	put("/proc/self/status", "\nCapEff:\t000001fffeffffff\n"); /* all but SYS_RESOURCE */
	look("memlock");
	ck_text(DOCTOR_WARN, "64 KiB", "LimitMEMLOCK=infinity");
	put("/proc/self/limits", "Limit\nMax locked memory         unlimited            unlimited            bytes\n");
	look("memlock");
	ck_text(DOCTOR_OK, "unlimited", "");
}
END_TEST

START_TEST(lockdown_forbids_reading_memory)
{
	put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	look("lockdown");
	ck_text(DOCTOR_WARN, "confidentiality", "lockdown=integrity");
	put("/dev/otprof", "");
	look("sampler");
	ck_text(DOCTOR_WARN, "not kmod (lockdown)", "lockdown");
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	ck_assert_int_eq(look("lockdown"), DOCTOR_OK);
}
END_TEST

START_TEST(pid_namespace_names_the_wrong_processes)
{
	put_link("/proc/self/ns/pid", "pid:[4026532201]");
	look("pid_namespace");
	ck_text(DOCTOR_WARN, "of its own", "--pid=host");
}
END_TEST

START_TEST(module_that_is_built_only_has_to_be_loaded)
{
	put("/lib/modules/6.12.9-amd64/updates/dkms/otprof.ko.xz", "");
	look("module");
	ck_text(DOCTOR_OK, "built for this kernel, not loaded; not needed", "modprobe otprof");
	take("/sys/kernel/btf/vmlinux");
	look("module");
	ck_text(DOCTOR_WARN, "built for this kernel, not loaded", "modprobe otprof");
}
END_TEST

START_TEST(dkms_says_for_which_kernel)
{
	look("dkms");
	ck_text(DOCTOR_OK, "no module source", "");
	put("/var/lib/dkms/otprof/0.1.0/source/x", "");
	look("dkms");
	ck_text(DOCTOR_WARN, "headers of 6.12.9-amd64", "apt install linux-headers-6.12.9-amd64");
	put("/lib/modules/6.12.9-amd64/build/Makefile", "");
	look("dkms");
	ck_text(DOCTOR_WARN, "not built for 6.12.9-amd64", "dkms install otprof/0.1.0 -k 6.12.9-amd64");
	put("/var/lib/dkms/otprof/0.1.0/6.12.9-amd64/x86_64/log", "");
	look("dkms");
	ck_text(DOCTOR_OK, "otprof 0.1.0, built", "");
}
END_TEST

START_TEST(secure_boot_matters_where_the_module_is_wanted)
{
	put_bytes("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\6\0\0\0\1", 5);
	look("secure_boot");
	ck_text(DOCTOR_OK, "on", "mokutil");
	take("/sys/kernel/btf/vmlinux");
	look("secure_boot");
	ck_text(DOCTOR_WARN, "on", "mokutil --import /var/lib/dkms/mok.pub");
	put("/var/lib/shim-signed/mok/MOK.der", "");
	look("secure_boot");
	ck_text(DOCTOR_WARN, "on", "mokutil --import /var/lib/shim-signed/mok/MOK.der");
}
END_TEST

START_TEST(little_memory_is_told)
{
	put("/proc/meminfo", "MemAvailable: 60000 kB\n");
	look("memory");
	ck_text(DOCTOR_WARN, "only 58.6 MiB available", "[limits] memory");
}
END_TEST

START_TEST(systemd_without_the_unit)
{
	take("/lib/systemd/system/otprofd.service");
	look("systemd");
	ck_text(DOCTOR_WARN, "no otprofd.service", "apt install otprof");
}
END_TEST

START_TEST(nothing_at_all_is_a_failure)
{
	strcat(dir, "/no-such");
	ck_assert_int_eq(look("kernel"), DOCTOR_FAIL);
	ck_text(DOCTOR_FAIL, "/proc is not mounted", "mount -t proc");
	look("sampler");
	ck_text(DOCTOR_FAIL, "none can be used", "");
	dir[strlen(dir) - strlen("/no-such")] = '\0';
}
END_TEST

START_TEST(what_files_say_is_made_plain)
{
	put("/proc/sys/kernel/osrelease", "6.12.9\033[31m\xff\n");
	look("kernel");
	ck_text(DOCTOR_OK, "6.12.9?[31m? (6.12.9)", "");
}
END_TEST

Suite *doctor_suite(void)
{
	Suite *s = suite_create("doctor");
	TCase *t = tcase_create("doctor");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, whole_host_is_ok);
	tcase_add_test(t, without_btf_the_module_is_what_is_left);
	tcase_add_test(t, without_sys_a_mount_is_wanted);
	tcase_add_test(t, paranoid_3_needs_an_administrator);
	tcase_add_test(t, missing_capability_is_named);
	tcase_add_test(t, kernel_symbols_missing_or_hidden);
	tcase_add_test(t, cgroup_version_1_is_told);
	tcase_add_test(t, no_cgroup_is_told);
	tcase_add_test(t, kernels_that_can_freeze_are_refused);
	tcase_add_test(t, old_kernel_wants_the_module);
	tcase_add_test(t, packages_are_installed_by_what_is_there);
	tcase_add_test(t, memlock_counts_before_5_11);
	tcase_add_test(t, lockdown_forbids_reading_memory);
	tcase_add_test(t, pid_namespace_names_the_wrong_processes);
	tcase_add_test(t, module_that_is_built_only_has_to_be_loaded);
	tcase_add_test(t, dkms_says_for_which_kernel);
	tcase_add_test(t, secure_boot_matters_where_the_module_is_wanted);
	tcase_add_test(t, little_memory_is_told);
	tcase_add_test(t, systemd_without_the_unit);
	tcase_add_test(t, nothing_at_all_is_a_failure);
	tcase_add_test(t, what_files_say_is_made_plain);
	suite_add_tcase(s, t);
	return s;
}
