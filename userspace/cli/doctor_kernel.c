// SPDX-License-Identifier: Apache-2.0
/* Checks of the kernel: its features, and who may use them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/capability.h"
#include "base/cleanup.h"
#include "cli/doctor.h"
#include "source/pids.h"

#define MEMLOCK_NEEDED	      (16u << 20) /* maps and ring of a host of up to 16 CPUs */

static bool doctor_has_capability(const struct doctor *d, int cap)
{
	return d->capabilities >> cap & 1;
}

static void doctor_blocks_bpf(struct doctor *d, const struct finding *f)
{
	if (!d->no_bpf)
		d->no_bpf = f->id;
}

void doctor_kernel(struct doctor *d, struct finding *f)
{
	const struct kernel_version *v = &d->kernel;

	if (!v->major) {
		doctor_set(f, DOCTOR_FAIL, "the kernel's version cannot be read: /proc is not mounted");
		doctor_fix(f, "mount -t proc proc /proc");
		d->no_bpf = d->no_kmod = d->no_perf = f->id;
	} else if (kernel_version_below(v, 4, 4, 0)) {
		doctor_set(f, DOCTOR_FAIL, "%s is older than 4.4, the oldest version that is supported", d->release);
		doctor_fix(f, "boot a newer kernel");
		d->no_bpf = d->no_kmod = d->no_perf = f->id;
	} else if (kernel_version_below(v, 5, 8, 0)) {
		doctor_set(f, DOCTOR_WARN, "%s has no BPF ring buffer (5.8 and later): the module samples here", d->release);
		doctor_fix(f, "%s otprof-dkms && modprobe otprof", d->install);
		doctor_blocks_bpf(d, f);
	} else {
		doctor_set(f, DOCTOR_OK, "%s (%u.%u.%u)", d->release, v->major, v->minor, v->patch);
	}
}

void doctor_freeze(struct doctor *d, struct finding *f)
{
	const struct kernel_version *v = &d->kernel;

	if (!v->major || !kernel_can_freeze(v)) {
		doctor_set(f, DOCTOR_OK, "user memory can be copied from an interrupt");
		return;
	}
	doctor_set(f, DOCTOR_WARN,
		   "%u.%u.%u can freeze when copy_from_user_nofault runs in an interrupt (5.19 to 6.3; fixed in 6.1.36, "
		   "6.3.10, 6.4): the BPF sampler refuses it",
		   v->major, v->minor, v->patch);
	doctor_fix(f, "%s && reboot, or: %s otprof-dkms && modprobe otprof", d->upgrade, d->install);
	doctor_blocks_bpf(d, f);
}

void doctor_btf(struct doctor *d, struct finding *f)
{
	char byte[2];
	ssize_t n = doctor_read(d, "/sys/kernel/btf/vmlinux", byte, sizeof(byte));

	if (n > 0) {
		doctor_set(f, DOCTOR_OK, "/sys/kernel/btf/vmlinux");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "no BTF: /sys/kernel/btf/vmlinux cannot be read (%s): the BPF sampler cannot be loaded",
		   n < 0 ? strerror((int)-n) : "it is empty");
	if (doctor_exists(d, "/sys/kernel"))
		doctor_fix(f, "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, or: %s otprof-dkms && modprobe otprof", d->install);
	else
		doctor_fix(f, "mount -t sysfs sysfs /sys");
	doctor_blocks_bpf(d, f);
}

void doctor_ring_buffer(struct doctor *d, struct finding *f)
{
	if (d->kernel.major && !kernel_version_below(&d->kernel, 5, 8, 0)) {
		doctor_set(f, DOCTOR_OK, "BPF ring buffer, from 5.8 on");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "no BPF ring buffer before 5.8");
	doctor_fix(f, "%s otprof-dkms && modprobe otprof", d->install);
	doctor_blocks_bpf(d, f);
}

static void doctor_missing_capabilities(const struct doctor *d, char to[160])
{
	static const struct {
		int cap;
		const char *name;
	} wanted[] = {{CAP_SYS_PTRACE, "SYS_PTRACE"}, {CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH"},
		      {CAP_SYSLOG, "SYSLOG"}, {CAP_IPC_LOCK, "IPC_LOCK"}, {CAP_SETUID, "SETUID"},
		      {CAP_SETGID, "SETGID"}, {CAP_KILL, "KILL"}};
	int n = 0;

	to[0] = '\0';
	if (!d->admin && !doctor_has_capability(d, CAP_BPF))
		n += snprintf(to, 160, " CAP_BPF");
	if (!d->admin && !doctor_has_capability(d, CAP_PERFMON))
		n += snprintf(to + n, 160 - (size_t)n, " CAP_PERFMON");
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!doctor_has_capability(d, wanted[i].cap))
			n += snprintf(to + n, 160 - (size_t)n, " CAP_%s", wanted[i].name);
}

void doctor_capabilities(struct doctor *d, struct finding *f)
{
	char names[160];

	doctor_missing_capabilities(d, names);
	if (!*names) {
		doctor_set(f, DOCTOR_OK, "all that otprofd needs");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "missing:%s. otprofd does not start without them; 'otprof record -- COMMAND' may", names);
	doctor_fix(f, "sudo otprof doctor, to check otprofd's capabilities; in a container: --cap-add for each of them");
	if (!d->admin && !(doctor_has_capability(d, CAP_BPF) && doctor_has_capability(d, CAP_PERFMON)))
		doctor_blocks_bpf(d, f);
	if (!d->admin && !doctor_has_capability(d, CAP_PERFMON))
		d->no_kmod = d->no_kmod ? d->no_kmod : f->id;
}

void doctor_paranoid(struct doctor *d, struct finding *f)
{
	long level = doctor_number(d, "/proc/sys/kernel/perf_event_paranoid", -100);

	if (level == -100) {
		doctor_set(f, DOCTOR_WARN, "kernel.perf_event_paranoid cannot be read: the kernel may have no perf events");
		doctor_fix(f, "boot a kernel with CONFIG_PERF_EVENTS=y");
		d->no_perf = d->no_perf ? d->no_perf : f->id;
		doctor_blocks_bpf(d, f);
	} else if (level > 2 && !d->admin) {
		doctor_set(f, DOCTOR_WARN, "kernel.perf_event_paranoid = %ld: perf events need CAP_SYS_ADMIN", level);
		doctor_fix(f, "sysctl -w kernel.perf_event_paranoid=2");
		d->no_perf = d->no_perf ? d->no_perf : f->id;
		doctor_blocks_bpf(d, f);
	} else if (level > 2) {
		doctor_set(f, DOCTOR_OK, "kernel.perf_event_paranoid = %ld, and CAP_SYS_ADMIN is held", level);
		doctor_fix(f, "sysctl -w kernel.perf_event_paranoid=2, for 'otprof record' without root");
	} else {
		doctor_set(f, DOCTOR_OK, "kernel.perf_event_paranoid = %ld", level);
	}
}

void doctor_lockdown(struct doctor *d, struct finding *f)
{
	char text[128] = "";

	doctor_read(d, "/sys/kernel/security/lockdown", text, sizeof(text));
	if (strstr(text, "[confidentiality]")) {
		doctor_set(f, DOCTOR_WARN, "confidentiality: neither BPF programs nor the module may read the kernel's memory");
		doctor_fix(f, "boot with lockdown=integrity");
		doctor_blocks_bpf(d, f);
		d->no_kmod = d->no_kmod ? d->no_kmod : f->id;
	} else if (strstr(text, "[integrity]")) {
		doctor_set(f, DOCTOR_OK, "integrity: a module must be signed, BPF is not affected");
	} else {
		doctor_set(f, DOCTOR_OK, "none");
	}
}

void doctor_memlock(struct doctor *d, struct finding *f)
{
	static const char name[] = "\nMax locked memory";
	unsigned long long soft = 0;
	char text[4096];
	const char *line;

	if (d->kernel.major && !kernel_version_below(&d->kernel, 5, 11, 0)) {
		doctor_set(f, DOCTOR_OK, "BPF maps are not charged to it (5.11 and later)");
		return;
	}
	line = doctor_read(d, "/proc/self/limits", text, sizeof(text)) > 0 ? strstr(text, name) : NULL;
	if (line && !strncmp(line + strlen(name) + strspn(line + strlen(name), " "), "unlimited", 9)) {
		doctor_set(f, DOCTOR_OK, "unlimited");
		return;
	}
	if (line)
		sscanf(line + strlen(name), "%llu", &soft);
	if (soft >= MEMLOCK_NEEDED || doctor_has_capability(d, CAP_SYS_RESOURCE)) {
		doctor_set(f, DOCTOR_OK, "%llu KiB%s", soft >> 10, soft >= MEMLOCK_NEEDED ? "" : ", and CAP_SYS_RESOURCE raises it");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "RLIMIT_MEMLOCK is %llu KiB, and this kernel charges BPF maps to it: some %u KiB are needed",
		   soft >> 10, MEMLOCK_NEEDED >> 10);
	doctor_fix(f, "LimitMEMLOCK=infinity in the unit (as shipped), or: ulimit -l %u", MEMLOCK_NEEDED >> 10);
	doctor_blocks_bpf(d, f);
}

void doctor_pid_namespace(struct doctor *d, struct finding *f)
{
	char path[4200], target[64], hosts[32];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", d->root);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0)
		target[n] = '\0';
	snprintf(hosts, sizeof(hosts), "pid:[%u]", PIDS_HOST_NAMESPACE);
	if (n > 0 && !strcmp(target, hosts)) {
		doctor_set(f, DOCTOR_OK, "the host's own");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "a pid namespace of its own: samplers see the host's pids and would name the wrong processes");
	doctor_fix(f, "docker run --pid=host, or hostPID: true in the pod");
	doctor_blocks_bpf(d, f);
	d->no_kmod = d->no_kmod ? d->no_kmod : f->id;
}

/* Addresses are zero for processes that may not read them. */
static bool addresses_hidden(const char *text)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strspn(line, "0") < 8 && strspn(line, "0123456789abcdef") >= 8)
			return false;
	}
	return true;
}

void doctor_kallsyms(struct doctor *d, struct finding *f)
{
	char text[65536];
	ssize_t n = doctor_read(d, "/proc/kallsyms", text, sizeof(text));

	if (n <= 0) {
		doctor_set(f, DOCTOR_WARN, "/proc/kallsyms cannot be read (%s): kernel frames have no names",
			   n < 0 ? strerror((int)-n) : "it is empty");
		doctor_fix(f, "boot a kernel with CONFIG_KALLSYMS=y");
	} else if (addresses_hidden(text)) {
		doctor_set(f, DOCTOR_WARN, "/proc/kallsyms hides its addresses (kernel.kptr_restrict = %ld): kernel frames have no names",
			   doctor_number(d, "/proc/sys/kernel/kptr_restrict", -1));
		doctor_fix(f, "sysctl -w kernel.kptr_restrict=1, and CAP_SYSLOG for otprofd");
	} else {
		doctor_set(f, DOCTOR_OK, "kernel symbols with addresses");
	}
}
