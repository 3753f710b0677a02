// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/cgroup.h"

Suite *cgroup_suite(void);

#define ID1 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "2f1d3a5c-1111-2222-3333-444455556666"
#define UID_ "2f1d3a5c_1111_2222_3333_444455556666"

static const struct {
	const char *text, *container, *pod, *unit, *service, *name;
} cases[] = {
	/* Docker: systemd driver, cgroupfs driver, inside another container. */
	{"0::/system.slice/docker-" ID1 ".scope\n", ID1, "", "", "", ""},
	{"0::/docker/" ID1 "\n", ID1, "", "", "", ""},
	{"0::/docker/" ID1 "/docker/" ID2 "\n", ID2, "", "", "", ""},
	{"0::/system.slice/docker-" ID1 ".scope/init.scope\n", ID1, "", "", "", ""},
	{"0::/system.slice/docker-" ID1 ".scope/system.slice/nginx.service\n", ID1, "", "nginx.service", "nginx", ""},
	/* Kubernetes: containerd, CRI-O, static pod, cgroupfs driver, broken driver setting. */
	{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID1 ".scope\n",
	 ID1, UID, "", "", ""},
	{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID1 ".scope/container\n", ID1, UID, "", "", ""},
	{"0::/kubepods/besteffort/pod" UID "/" ID1 "\n", ID1, UID, "", "", ""},
	{"0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID1 "\n", ID1, "0123456789abcdef0123456789abcdef",
	 "", "", ""},
	{"0::/system.slice/containerd.service/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" ID1 "\n", ID1, UID,
	 "", "", ""},
	{"0::/../../kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID1 ".scope\n", ID1, UID, "", "", ""},
	/* kind: a node that is a container itself */
	{"0::/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
	 ".slice/cri-containerd-" ID1 ".scope\n",
	 ID1, UID, "", "", ""},
	/* Podman, and its monitor, which is the host's. */
	{"0::/machine.slice/libpod-" ID1 ".scope/container\n", ID1, "", "", "", ""},
	{"0::/machine.slice/libpod-conmon-" ID1 ".scope\n", "", "", "", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID1 ".scope\n", ID1, "", "", "", ""},
	{"0::/libpod_parent/libpod-" ID1 "\n", ID1, "", "", "", ""},
	{"0::/kubepods.slice/crio-conmon-" ID1 ".scope\n", "", "", "", "", ""},
	/* LXC and nspawn have names. */
	{"0::/lxc.payload.web/system.slice/nginx.service\n", "", "", "nginx.service", "nginx", "web"},
	{"0::/machine.slice/systemd-nspawn@db.service/payload\n", "", "", "", "", "db"},
	{"0::/machine.slice/machine-my\\x2dbox.scope\n", "", "", "", "", "my-box"},
	{"0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "", "", "", "", ""},
	/* systemd units. */
	{"0::/system.slice/nginx.service\n", "", "", "nginx.service", "nginx", ""},
	{"0::/system.slice/nginx.service/worker/3\n", "", "", "nginx.service", "nginx", ""},
	{"0::/../../system.slice/nginx.service\n", "", "", "nginx.service", "nginx", ""},
	{"0::/system.slice/system-getty.slice/getty@tty1.service\n", "", "", "getty@tty1.service", "getty@tty1", ""},
	{"0::/system.slice/foo\\x2dbar@a\\x2db.service\n", "", "", "foo-bar@a-b.service", "foo-bar@a-b", ""},
	{"0::/user.slice/user-1000.slice/session-4.scope\n", "", "", "", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "", "user@1000.service", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-12.scope\n", "", "",
	 "user@1000.service", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/syncthing.service\n", "", "", "syncthing.service",
	 "syncthing", ""},
	{"0::/system.slice/run-u123.service\n", "", "", "run-u123.service", "", ""},
	{"0::/system.slice/run-p12-i34.service\n", "", "", "run-p12-i34.service", "", ""},
	{"0::/system.slice/run-r0123456789abcdef0123456789abcdef.service\n", "", "",
	 "run-r0123456789abcdef0123456789abcdef.service", "", ""},
	{"0::/system.slice/run-updates.service\n", "", "", "run-updates.service", "run-updates", ""},
	/* Version 1, and both at once. */
	{"12:cpu,cpuacct:/docker/" ID1 "\n1:name=systemd:/docker/" ID1 "\n0::/system.slice/docker.service\n", ID1, "",
	 "", "", ""},
	{"9:name=systemd:/system.slice/cron.service\n4:memory:/system.slice/cron.service\n0::/\n", "", "", "cron.service",
	 "cron", ""},
	{"4:memory:/kubepods/pod" UID "/" ID1 "\n2:cpuset:/\n", ID1, UID, "", "", ""},
	/* Nothing, and nonsense. */
	{"", "", "", "", "", ""},
	{"0::/\n", "", "", "", "", ""},
	{"\n\n:\n::\n0:\n0::\n0::x\nabc", "", "", "", "", ""},
	{"0::/.service\n", "", "", "", "", ""},
	{"0::/x" ID1 "\n", "", "", "", "", ""},
	{"0::/kubepods/podnot-a-uid\n", "", "", "", "", ""},
};

START_TEST(a_path_tells_container_pod_and_unit)
{
	struct cgroup_facts f;

	cgroup_parse(cases[_i].text, strlen(cases[_i].text), &f);
	ck_assert_str_eq(f.container_id, cases[_i].container);
	ck_assert_str_eq(f.pod_uid, cases[_i].pod);
	ck_assert_str_eq(f.unit, cases[_i].unit);
	ck_assert_str_eq(f.service, cases[_i].service);
	ck_assert_str_eq(f.container_name, cases[_i].name);
}
END_TEST

START_TEST(long_text_is_cut_not_trusted)
{
	static char text[100000];
	struct cgroup_facts f;

	memset(text, 'a', sizeof(text));
	memcpy(text, "0::/", 4);
	memcpy(text + sizeof(text) - 8, ".service", 8);
	cgroup_parse(text, sizeof(text), &f);
	ck_assert_uint_eq(strlen(f.unit), sizeof(f.unit) - 1);
	ck_assert_uint_eq(strlen(f.path), sizeof(f.path) - 1);
	memset(text, '/', sizeof(text));
	cgroup_parse(text, sizeof(text), &f);
	ck_assert_str_eq(f.unit, "");
}
END_TEST

Suite *cgroup_suite(void)
{
	Suite *s = suite_create("cgroup");
	TCase *t = tcase_create("paths");

	tcase_add_loop_test(t, a_path_tells_container_pod_and_unit, 0, ARRAY_SIZE(cases));
	tcase_add_test(t, long_text_is_cut_not_trusted);
	suite_add_tcase(s, t);
	return s;
}
